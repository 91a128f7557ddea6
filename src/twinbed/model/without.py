"""Tables without some runs: those that a study leaves out for a caution."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from twinbed.model.record import Record
from twinbed.model.tables import Outline, Planned
from twinbed.model.view import View


@dataclass(frozen=True)
class Without(View):
    """Tables without the runs of these ids: they are neither planned nor made."""

    ids: Set[str]

    @property
    def outline(self) -> Outline:
        return self.tables.outline

    @property
    def planned(self) -> Sequence[Planned]:
        return [run for run in self.tables.planned if run.id not in self.ids]

    @property
    def records(self) -> Sequence[Record]:
        return [record for record in self.tables.records if record.id not in self.ids]
