"""What ``tails`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
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
    """The requests of all runs."""
    fewest: int
    """Requests of the run that has the fewest."""
    quantiles: Mapping[float, float]
    """Share -> seconds: the geometric mean of the runs' own quantiles. A share is missing if some run has too few requests."""
    of_runs: tuple[Mapping[float, float], ...]
    """The quantiles of each run."""


@dataclass(frozen=True, slots=True)
class Shift:
    """One quantile of one cell, compared with the reference."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    share: float
    value: float
    """Seconds."""
    reference_value: float
    ratio: float | None
    interval: Interval | None
    """The interval of the ratio at 1 - 2 alpha."""
    p_equivalent: float
    p_different: float
    """After Holm's correction over all verdicts; uncorrected where there is no verdict."""
    paired: bool
    verdict: Verdict | None
    """None for shares outside of VERDICTS: the rest of the shift function."""

    @property
    def bounds(self) -> tuple[float, float] | tuple[None, None]:
        """Return the ends of the interval."""
        return (self.interval.low, self.interval.high) if self.interval else (None, None)


@dataclass(frozen=True, slots=True)
class Tails(Cautioned):
    source: str
    """``exchanges`` (times as captured on the clients' links) or ``requests`` (as the tool wrote them)."""
    step: float
    """The seconds that times are rounded to; 0 where they are not."""
    reference: str
    margin: float
    confidence: float
    tails: tuple[Tail, ...]
    shifts: tuple[Shift, ...]
    family: int

    @property
    def verdicts(self) -> tuple[Shift, ...]:
        return tuple(shift for shift in self.shifts if shift.verdict is not None)
