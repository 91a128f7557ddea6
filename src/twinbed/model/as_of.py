"""Tables as they were after the first blocks."""

from __future__ import annotations

from collections.abc import Sequence
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
class AsOf:
    """Tables with the runs of the first blocks only: what there was to see at an interim analysis."""

    tables: Tables
    blocks: int

    @property
    def shown(self) -> Path:
        return self.tables.shown

    @property
    def outline(self) -> Outline:
        return self.tables.outline

    @property
    def planned(self) -> Sequence[Planned]:
        return [run for run in self.tables.planned if run.block < self.blocks]

    @property
    def records(self) -> Sequence[Record]:
        return [record for record in self.tables.records if record.block < self.blocks]

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
