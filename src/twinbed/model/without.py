"""Tables without some runs: those that a study leaves out for a caution."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.caution import Caution
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.tables import Outline, Planned, Tables

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Without:
    """Tables without the runs of these ids: they are neither planned nor made."""

    tables: Tables
    ids: Set[str]

    @property
    def shown(self) -> Path:
        return self.tables.shown

    @property
    def outline(self) -> Outline:
        return self.tables.outline

    @property
    def planned(self) -> Sequence[Planned]:
        return [run for run in self.tables.planned if run.id not in self.ids]

    @property
    def records(self) -> Sequence[Record]:
        return [record for record in self.tables.records if record.id not in self.ids]

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
        """The whole table: readers take the rows of the records that there are."""
        return self.tables.table(name)
