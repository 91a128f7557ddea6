"""A study that goes on until its verdicts are reached: how far it may go, and the looks that were taken on the way.

``looks.json`` of a results folder holds the looks; whoever reads the results judges them as of the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from twinbed.model.caution import Caution
from twinbed.model.linkcheck import LinkCheck
from twinbed.model.record import Record
from twinbed.model.units import Duration

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.model.tables import Outline, Planned, Tables

FORMAT = 1
FILE = "looks.json"


class UntilDecided(BaseModel):
    """``replicates`` of a study that goes on block by block until every headline verdict is reached."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    least: Annotated[StrictInt, Field(ge=4, le=1000)] = Field(5, description="replicates of each cell before the first look")
    most: Annotated[StrictInt, Field(ge=5, le=1000)] = Field(description="replicates of each cell at the last look")
    budget: Duration | None = Field(None, gt=0, description="time that all runs together may take")


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the data of all complete blocks, and what it decided."""

    number: int
    """From 1."""
    planned: int
    """How many looks there are to be, if none ends the study."""
    blocks: int
    """Complete blocks that it is of."""
    information: float
    """Share of the largest study's information, which decides what it may spend."""
    spent: float
    """Alpha that this look and those before it have spent."""
    level: float
    """One-sided level of this look's own tests."""
    alpha: float
    """What all looks together may spend."""
    decided: int
    """Headline comparisons with a verdict, equivalent or different."""
    open: int
    """Those without."""
    ended: str = ""
    """Why it was the last: ``decided``, ``most`` or ``budget``; empty where the study goes on."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The looks of a study; there may be none yet."""

    least: int
    most: int
    taken: tuple[Look, ...] = ()

    @property
    def blocks(self) -> int:
        """The blocks that verdicts are of: those of the last look."""
        return self.taken[-1].blocks if self.taken else 0

    def to_json(self) -> dict[str, Any]:
        looks = [asdict(look) for look in self.taken]
        return {"format": FORMAT, "least": self.least, "most": self.most, "looks": looks}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Looks:
        """Raises ValueError where the format is not this one, KeyError or TypeError where a field is missing."""
        if data.get("format") != FORMAT:
            raise ValueError(f"{FILE} has format {data.get('format')!r}, this twinbed reads {FORMAT}")
        return cls(data["least"], data["most"], tuple(Look(**look) for look in data["looks"]))


@dataclass(frozen=True)
class AsOf:
    """Tables with the runs of the first blocks only: what there was to see at a look."""

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
    def link_checks(self) -> Sequence[LinkCheck]:
        return self.tables.link_checks

    def table(self, name: str) -> pa.Table:
        """The whole table: readers take the rows of the records that there are."""
        return self.tables.table(name)
