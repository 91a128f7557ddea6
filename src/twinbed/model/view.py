"""Other views of opened tables: base class, tables without some runs, and tables of the first blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.caution import Caution
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.tables import Tables

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
