"""A study that runs until its verdicts are reached: its limits, and its interim analyses.

They are in ``looks.json`` of a results folder. Readers judge the results as of the last one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from twinbed.model.json import Document, dataclass_of, document, integer, tuple_of, value_of
from twinbed.model.units import Duration

FORMAT = 1
FILE = "looks.json"


class UntilDecided(BaseModel):
    """``replicates`` of a study that goes on block by block until every headline verdict is reached."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    least: Annotated[StrictInt, Field(ge=4, le=1000)] = Field(
        5, description="replicates of each cell before the first interim analysis"
    )
    most: Annotated[StrictInt, Field(ge=5, le=1000)] = Field(
        examples=[30], description="replicates of each cell at the last interim analysis"
    )
    budget: Duration | None = Field(None, gt=0, examples=["2h"], description="time that all runs together may take")


@dataclass(frozen=True, slots=True)
class InterimAnalysis:
    """One interim analysis (a look) of the data of all complete blocks, and what it decided."""

    number: int
    """From 1."""
    planned: int
    """The number of planned analyses, if none ends the study."""
    blocks: int
    """The complete blocks whose data it has."""
    information: float
    """Share of the largest study's information, which decides what it may spend."""
    spent: float
    """Alpha that this analysis and those before it have spent."""
    level: float
    """One-sided level of its own tests."""
    alpha: float
    """Alpha of all of them together."""
    decided: int
    """Headline comparisons with a verdict, equivalent or different."""
    open: int
    """Headline comparisons without a verdict."""
    ended: str = ""
    """Why it was the last: ``decided``, ``most`` or ``budget``; empty if the study goes on."""

    @classmethod
    def from_json(cls, data: Document) -> InterimAnalysis:
        return dataclass_of(cls, data)


@dataclass(frozen=True, slots=True)
class InterimAnalyses:
    """The interim analyses of a study; there may be none yet."""

    least: int
    most: int
    taken: tuple[InterimAnalysis, ...] = ()

    @property
    def blocks(self) -> int:
        """Return the number of blocks that verdicts are based on: those of the last analysis."""
        return self.taken[-1].blocks if self.taken else 0

    def to_json(self) -> Document:
        looks = [asdict(look) for look in self.taken]
        return {"format": FORMAT, "least": self.least, "most": self.most, "looks": looks}

    @classmethod
    def from_json(cls, data: Document) -> InterimAnalyses:
        """Read them. Raises ValueError for another format, or for a field that is missing or of another kind."""
        if data.get("format") != FORMAT:
            raise ValueError(f"{FILE} has format {data.get('format')!r:.60}, this twinbed reads {FORMAT}")
        taken = value_of(data, "looks", tuple_of(lambda look: InterimAnalysis.from_json(document(look))))
        return cls(value_of(data, "least", integer), value_of(data, "most", integer), taken)
