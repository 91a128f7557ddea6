"""How many fit: the statements of ``capacity`` and the runs that they are made of, as pages and tables show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.observations.numbered import one_of

NO_INTERVAL = "no end of an interval of the capacity is sure enough, which takes half the error that a bound alone takes"


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

    def interval(self, one: str) -> str:
        """Return where the capacity lies, in words. ``one`` is what N counts."""
        low, high = self.low, self.high
        if high is None:
            return f"the capacity is at least {low} {one}s" if low else NO_INTERVAL
        if low == high:
            return f"the capacity is {low} {one}{'' if low == 1 else 's'}"
        return f"the capacity is {low} to {high} {one}s" if low else f"the capacity is at most {high} {one}s"


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
        return one_of(self.over)
