"""Tables as they were after the first blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from twinbed.model.columns import PlannedRuns, Records
from twinbed.model.tables import Outline
from twinbed.model.view import View


@dataclass(frozen=True)
class AsOf(View):
    """Tables with the runs of the first blocks only, as an interim analysis saw them."""

    blocks: int

    @property
    def outline(self) -> Outline:
        return self.tables.outline

    @cached_property
    def planned(self) -> PlannedRuns:
        planned = PlannedRuns.of(self.tables.planned)
        return planned.take((planned.blocks < self.blocks).nonzero()[0])

    @cached_property
    def records(self) -> Records:
        records = Records.of(self.tables.records)
        return records.take((records.blocks < self.blocks).nonzero()[0])
