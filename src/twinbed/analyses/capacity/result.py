"""How many fit: the statements of ``capacity`` and the runs that they are made of, as pages and tables show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.json import Json
from twinbed.model.result import Interval
from twinbed.model.run import Level

Row = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Tested:
    """One tested N."""

    n: int
    values: Sequence[float]
    """The values of its runs."""
    mean: float
    interval: Interval
    monotone: float
    """By a monotone regression over N."""
    keeps: float
    """The least confidence of this and all smaller N that the objective holds."""
    fails: float
    """The least confidence of this and all larger N that it does not."""


@dataclass(frozen=True, slots=True)
class LevelCapacity:
    """One combination of levels other than N."""

    levels: Mapping[str, Level]
    statement: str
    keeps: int | None
    """The largest N shown to keep the objective."""
    fails: int | None
    """The least N shown not to."""
    low: int
    """The lower end of the interval of the capacity; 0 where not even the least N is shown to keep it."""
    high: int | None
    """None where no N is shown to fail."""
    knee: float | None
    bound: float
    """In the unit of the response."""
    steps: Sequence[Tested]
    """In the order of N."""

    @property
    def single(self) -> float | None:
        """The mean at N = 1."""
        return next((step.mean for step in self.steps if step.n == 1), None)


@dataclass(frozen=True, slots=True)
class Capacities:
    source: str
    response: str
    """The metric."""
    unit: str
    over: str
    """The factor that is N."""
    per_pair: bool
    """Whether values are divided by N."""
    objective: str
    """In words."""
    confidence: float
    groups: Sequence[LevelCapacity]
    cautions: Sequence[Caution] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs or rows that are not in it."""

    @property
    def one(self) -> str:
        """What N counts: ``pair``."""
        return self.over.rpartition(".")[2].removesuffix("s")


def tables(capacities: Capacities) -> dict[str, list[Row]]:
    """``statements`` (one a combination of levels) and ``steps`` (one for each N)."""
    statements: list[Row] = [
        {
            **group.levels,
            "objective": capacities.objective,
            "statement": group.statement,
            "keeps": group.keeps,
            "fails": group.fails,
            "low": group.low,
            "high": group.high,
            "knee": group.knee,
            "confidence": capacities.confidence,
        }
        for group in capacities.groups
    ]
    steps: list[Row] = [
        {
            **group.levels,
            "n": step.n,
            "runs": len(step.values),
            "mean": step.mean,
            "low": step.interval.low,
            "high": step.interval.high,
            "monotone": step.monotone,
            "bound": group.bound,
            "keeps": step.keeps,
            "fails": step.fails,
        }
        for group in capacities.groups
        for step in group.steps
    ]
    return {"statements": statements, "steps": steps}
