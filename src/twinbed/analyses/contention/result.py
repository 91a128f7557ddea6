"""The result of ``contention``: where a rate and the machine's metrics bend over N, and how well they show contended runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.observations.numbered import one_of


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric over the tested N."""

    metric: str
    mirrored: bool
    """True if the metric is shown with its sign changed, since it falls where others rise."""
    n: Sequence[int]
    smoothed: Sequence[float]
    curvature: Sequence[float | None]
    """Second difference, scaled to at most 1; None at both ends."""
    bent: float
    """The share of what a straight line over N leaves unexplained that the curve explains: 0 is no bend."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An inflection point."""

    metric: str
    n: float
    rises: bool
    """True if the slope falls before the point and rises after it."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One run as the detector sees it."""

    run: str
    """The run's identity."""
    replicate: int
    n: int
    kind: str
    """``contended``, ``free``, or ``unclear`` where its rate and its N disagree."""
    tested: bool
    """True for runs of a test replicate, which the detector was not trained on."""
    score: float


@dataclass(frozen=True, slots=True)
class Alarms:
    """The number of test runs that alarm, with the interval of their share."""

    count: int
    of: int
    interval: Interval

    @property
    def share(self) -> float:
        return self.count / self.of


@dataclass(frozen=True, slots=True)
class Step:
    """One tested N."""

    n: int
    lost: float
    """The share of the rate at the least N that the mean rate, made monotone, has lost."""
    alarms: Alarms | None
    """None without test runs."""


@dataclass(frozen=True, slots=True)
class Operating:
    """A point of the ROC curve."""

    threshold: float | None
    """None: above all scores, so that the detector never alarms."""
    false_alarms: float
    detected: float


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """A detector, and its results on runs that it was not trained on."""

    area: float
    interval: Interval | None
    threshold: float
    false_alarms: float
    """Share of test runs free of contention."""
    detected: float
    """Share of contended test runs."""
    unclear: int
    """Test runs that are neither contended nor free."""
    alarms_from: int | None
    """The least N at which most test runs alarm, after shares are made monotone over N."""
    fallen_from: int | None
    """The least N at which the rate has fallen by the share that matters."""
    before: Alarms | None
    """Alarms at N where the rate has begun to fall, by less than the share that matters; None without such an N."""
    steps: Sequence[Step]
    curve: Sequence[Operating]
    runs: Sequence[Scored]


@dataclass(frozen=True, slots=True)
class LevelContention:
    """One combination of levels other than N."""

    levels: Mapping[str, Level]
    curves: Sequence[Curve]
    """The rate first; empty where curves were not asked for."""
    turns: Sequence[Turn]
    """In the order of N."""
    detector: DetectorResult | None
    reason: str
    """Why there is no detector; empty where there is one."""


@dataclass(frozen=True, slots=True)
class Contention(Cautioned):
    source: str
    rate: str
    """The metric."""
    over: str
    """The factor that is N."""
    drop: float
    """A run is contended if it lost this share of its rate."""
    fallen: float
    """The lost share that matters."""
    groups: Sequence[LevelContention]

    @property
    def noun(self) -> str:
        """Return the noun that N counts: ``pair``."""
        return one_of(self.over)
