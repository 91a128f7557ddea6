"""What ``steady`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.model.result import Interval
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Share:
    """A share, as a mean over runs: 0.1 is 10 %."""

    mean: float
    interval: Interval | None
    """None for one run."""
    shown: bool
    """True if the share is shown to differ from 0."""


@dataclass(frozen=True, slots=True)
class Astray:
    """A single run that drifts by more than the margin, and unlike the others."""

    run: str
    drift: float
    others: float
    """The mean drift of the other runs."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where the spread of runs' means comes from, as shares of their mean, and the error that an hour of runs would have."""

    deviation: float
    """The standard deviation of runs' means."""
    within: float
    """The part that the series inside runs explain."""
    between: float
    """The part that differs between runs beyond that."""
    best_seconds: float | None
    """How long runs should last for the least error in a given time; None where longer is better."""
    seconds: float
    """The proposed length: the best, but at least half of the present one; the present one where longer is better."""
    runs_an_hour: int
    """Runs of that length that fit into an hour."""
    error_in_an_hour: float
    """The standard error of their mean."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The rate inside the runs of one cell on one testbed."""

    cell: Mapping[str, Level]
    testbed: str
    runs: int
    seconds: float
    """The mean length of a run's series."""
    overhead_s: float
    """The mean time that a run takes beyond its series."""
    series: tuple[float, ...]
    """The rate over time as shares of each run's own mean, averaged over runs."""
    least: tuple[float, ...]
    """The least of any run, at each time; ``most`` likewise."""
    most: tuple[float, ...]
    cut: float
    """The share of the series that the warm-up takes, by MSER-5."""
    warm_up: Share
    """By how much the mean of a run rises without its warm-up."""
    drift: Share
    """The change from the middle of a run to its end."""
    settles: bool | None
    """False: a drift of more than the margin is shown. True: one is ruled out. None: cannot tell."""
    astray: Astray | None
    budget: Budget | None
    """None for one run."""


@dataclass(frozen=True, slots=True)
class SteadyStates(Cautioned):
    source: str
    """``exchanges`` (answers a second, from captures) or ``intervals`` (iperf3's)."""
    margin: float
    cells: tuple[Steady, ...]
