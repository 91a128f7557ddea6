"""What ``tails`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level


def quantile_name(share: float) -> str:
    """Return ``P99.9``; the median by its name."""
    return "median" if share == 0.5 else f"P{100 * share:g}"


@dataclass(frozen=True, slots=True)
class Tail:
    """The times of all requests of one cell on one testbed."""

    cell: Mapping[str, Level]
    testbed: str
    runs: int
    requests: int
    """Of all runs."""
    fewest: int
    """Requests of the run that has the fewest."""
    quantiles: Mapping[float, float]
    """Share -> seconds: the geometric mean of the runs' own quantiles. Shares that some run has too few requests for are
    missing."""
    of_runs: tuple[Mapping[float, float], ...]
    """Of each run."""


@dataclass(frozen=True, slots=True)
class Shift:
    """One quantile of one cell against the reference."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    share: float
    value: float
    """Seconds."""
    reference_value: float
    ratio: float | None
    interval: Interval | None
    """At 1 - 2 alpha."""
    p_equivalent: float
    p_different: float
    """After Holm's correction over the family of verdicts; of what gets no verdict as it is."""
    paired: bool
    verdict: Verdict | None
    """Of the shares that are decided (VERDICTS); None of the rest of the shift function."""

    @property
    def bounds(self) -> tuple[float, float] | tuple[None, None]:
        """The ends of the interval."""
        return (self.interval.low, self.interval.high) if self.interval else (None, None)


@dataclass(frozen=True, slots=True)
class Tails:
    source: str
    """``exchanges``, times on the clients' links as captured, or ``requests``, as the tool counted them."""
    step: float
    """What times are rounded to, in seconds; 0 where they are not."""
    reference: str
    margin: float
    confidence: float
    tails: tuple[Tail, ...]
    shifts: tuple[Shift, ...]
    family: int
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs, or of requests, that are not in it."""

    @property
    def verdicts(self) -> tuple[Shift, ...]:
        return tuple(each for each in self.shifts if each.verdict is not None)
