"""Tables without some runs: those that a study leaves out for a caution."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

from twinbed.model.columns import PlannedRuns, Records
from twinbed.model.tables import Outline
from twinbed.model.view import View


@dataclass(frozen=True)
class Without(View):
    """Tables without the runs of these ids: they are neither planned nor made."""

    ids: Set[str]

    @property
    def outline(self) -> Outline:
        return self.tables.outline

    @cached_property
    def planned(self) -> PlannedRuns:
        return PlannedRuns.of(self.tables.planned).where(lambda run: run not in self.ids)

    @cached_property
    def records(self) -> Records:
        return Records.of(self.tables.records).where(lambda run: run not in self.ids)
