"""Other views of opened tables: base class, tables without some runs, and tables of the first blocks."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.caution import Caution
from twinbed.model.columns import PlannedRuns, Records
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.tables import Outline, Tables

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class View:
    """Tables as they were opened; subclasses define the runs and the study."""

    tables: Tables

    @property
    def shown(self) -> Path:
        return self.tables.shown

    @property
    def cautions(self) -> Sequence[Caution]:
        return self.tables.cautions

    @property
    def other_settings(self) -> int:
        return self.tables.other_settings

    @property
    def link_checks(self) -> Sequence[LinkCheck]:
        return self.tables.link_checks

    def table(self, name: str) -> pa.Table:
        """Return the whole table: readers take the rows of the records that there are."""
        return self.tables.table(name)


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
