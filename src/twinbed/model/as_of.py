"""Tables as they were after the first blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.model.record import Record
from twinbed.model.tables import Outline, Planned
from twinbed.model.view import View


@dataclass(frozen=True)
class AsOf(View):
    """Tables with the runs of the first blocks only: what there was to see at an interim analysis."""

    blocks: int

    @property
    def outline(self) -> Outline:
        return self.tables.outline

    @property
    def planned(self) -> Sequence[Planned]:
        return [run for run in self.tables.planned if run.block < self.blocks]

    @property
    def records(self) -> Sequence[Record]:
        return [record for record in self.tables.records if record.block < self.blocks]
