"""What ``steady`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.result import Interval
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Share:
    """A share, as a mean over runs: 0.1 is 10 %."""

    mean: float
    interval: Interval | None
    """None for one run."""
    shown: bool
    """Whether it is shown to be other than 0."""


@dataclass(frozen=True, slots=True)
class Astray:
    """A single run that drifts by more than the margin, and unlike the others."""

    run: str
    drift: float
    others: float
    """In their mean."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the spread of runs' means comes from, as shares of their mean, and what that makes of an hour."""

    deviation: float
    """Of runs' means."""
    within: float
    """What the series inside runs explain of it."""
    between: float
    """What comes between runs beyond that."""
    best_seconds: float | None
    """How long runs should last for the least error in a given time; None where longer is better."""
    seconds: float
    """The length that is proposed: the best, but no less than half of what it is; as it is where longer is better."""
    runs_an_hour: int
    """Of that length."""
    error_in_an_hour: float
    """The standard error of the mean of those."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The rate inside the runs of one cell on one testbed."""

    cell: Mapping[str, Level]
    testbed: str
    runs: int
    seconds: float
    """That a run's series lasts, in the mean."""
    overhead_s: float
    """That a run takes besides, in the mean."""
    series: tuple[float, ...]
    """Over time, as shares of each run's own mean, averaged over runs."""
    least: tuple[float, ...]
    most: tuple[float, ...]
    """Of single runs."""
    cut: float
    """The share of the series that the warm-up takes, by MSER-5."""
    warm_up: Share
    """By how much the mean of a run is more without it."""
    drift: Share
    """From the middle of a run to its end."""
    settles: bool | None
    """False where a drift of more than the margin is shown, true where one is ruled out, None where neither is."""
    astray: Astray | None
    budget: Budget | None
    """None for one run."""


@dataclass(frozen=True, slots=True)
class SteadyStates:
    source: str
    """``exchanges``, answers a second by captures, or ``intervals``, iperf3's."""
    margin: float
    cells: tuple[Steady, ...]
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs that are not in it."""
