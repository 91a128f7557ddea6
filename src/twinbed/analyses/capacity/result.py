"""The result of ``capacity``: statements on how many fit, and the runs behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.observations.numbered import one_of

NO_INTERVAL = "the capacity has no interval (each end needs half the error of a one-sided bound)"


@dataclass(frozen=True, slots=True)
class Tested:
    """One tested N."""

    n: int
    values: Sequence[float]
    """A value for each run."""
    mean: float
    interval: Interval
    monotone: float
    """The mean by a monotone regression over N."""
    keeps: float
    """The confidence that this and all smaller N keep the objective (the least of theirs)."""
    fails: float
    """The confidence that this and all larger N fail it."""


@dataclass(frozen=True, slots=True)
class LevelCapacity:
    """One combination of levels other than N."""

    levels: Mapping[str, Level]
    statement: str
    keeps: int | None
    """The largest N shown to keep the objective."""
    fails: int | None
    """The least N shown to fail it."""
    low: int
    """The lower end of the interval of the capacity; 0 if not even the least N is shown to keep the objective."""
    high: int | None
    """None where no N is shown to fail."""
    knee: float | None
    bound: float
    """The objective's bound, in the unit of the response."""
    steps: Sequence[Tested]
    """Ordered by N."""

    @property
    def single(self) -> float | None:
        """Return the mean at N = 1."""
        return next((step.mean for step in self.steps if step.n == 1), None)

    def interval(self, noun: str) -> str:
        """Return where the capacity lies, in words. ``noun``: what N counts, such as ``pair``."""
        low, high = self.low, self.high
        if high is None:
            return f"the capacity is at least {low} {noun}s" if low else NO_INTERVAL
        if low == high:
            return f"the capacity is {low} {noun}{'' if low == 1 else 's'}"
        return f"the capacity is {low} to {high} {noun}s" if low else f"the capacity is at most {high} {noun}s"


@dataclass(frozen=True, slots=True)
class Capacities(Cautioned):
    source: str
    response: str
    """The metric."""
    unit: str
    over: str
    """The factor that is N."""
    per_pair: bool
    """True if values are divided by N."""
    objective: str
    """The objective in words."""
    confidence: float
    groups: Sequence[LevelCapacity]

    @property
    def noun(self) -> str:
        """Return the noun that N counts: ``pair``."""
        return one_of(self.over)
