"""Where a rate and the machine's metrics bend over N, and whether the metrics tell a contended run; as pages show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.json import Json
from twinbed.model.result import Interval
from twinbed.model.run import Level

Row = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric over the tested N."""

    metric: str
    mirrored: bool
    """Whether it is shown with its sign changed, since it falls where others rise."""
    n: Sequence[int]
    smoothed: Sequence[float]
    curvature: Sequence[float | None]
    """Second difference, scaled to at most 1; None at both ends."""
    bent: float
    """The share that the curve explains of what a straight line over N leaves unexplained: 0 is no bend."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An inflection point."""

    metric: str
    n: float
    rises: bool
    """Whether the slope falls before the point and rises after it."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One run as the detector sees it."""

    run: str
    """Its identity."""
    replicate: int
    n: int
    kind: str
    """``contended``, ``free``, or ``unclear`` where its rate and its N disagree."""
    tested: bool
    """Whether it belongs to a test replicate, which the detector was not trained on."""
    score: float


@dataclass(frozen=True, slots=True)
class Alarms:
    """How many of so many test runs alarm, and the interval of their share."""

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
    """Share of the rate at the least N that the mean rate, made monotone, has lost."""
    alarms: Alarms | None
    """None without test runs."""


@dataclass(frozen=True, slots=True)
class Operating:
    """A point of the ROC curve."""

    threshold: float | None
    """None stands above all scores, where it never alarms."""
    false_alarms: float
    detected: float


@dataclass(frozen=True, slots=True)
class DetectorResult:
    """A detector, and how it did on runs that it was not trained on."""

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
    """The least N at which the rate has fallen by what matters."""
    before: Alarms | None
    """The test runs at N where the rate has begun to fall, by less than what matters; None without such an N."""
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
class Contention:
    source: str
    rate: str
    """The metric."""
    over: str
    """The factor that is N."""
    drop: float
    """Share of the rate lost from which on a run is contended."""
    fallen: float
    """Share lost that matters."""
    groups: Sequence[LevelContention]
    cautions: Sequence[Caution] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs or rows that are not in it."""

    @property
    def one(self) -> str:
        """What N counts: ``pair``."""
        return self.over.rpartition(".")[2].removesuffix("s")


def tables(contention: Contention) -> dict[str, list[Row]]:
    """One row a point, a run or a combination of levels; absence is None."""
    rows: dict[str, list[Row]] = {"curves": [], "inflections": [], "detectors": [], "alarms": [], "scores": [], "roc": []}
    for group in contention.groups:
        detector = group.detector
        parts: dict[str, list[Row]] = {
            "curves": [row for curve in group.curves for row in _curve(curve)],
            "inflections": [
                {"metric": turn.metric, "n": turn.n, "slope": "rises" if turn.rises else "falls"} for turn in group.turns
            ],
            "detectors": [_detector(detector, group.reason)],
            "alarms": []
            if detector is None
            else [{"n": step.n, "lost": step.lost, **_alarms(step.alarms)} for step in detector.steps],
            "scores": [] if detector is None else [_scored(run, detector.threshold) for run in detector.runs],
            "roc": [] if detector is None else [_operating(point) for point in detector.curve],
        }
        for name, of in parts.items():
            rows[name] += [{**group.levels, **row} for row in of]
    return rows


def _curve(curve: Curve) -> list[Row]:
    return [
        {
            "metric": curve.metric,
            "mirrored": curve.mirrored,
            "n": n,
            "smoothed": smoothed,
            "curvature": curvature,
            "bent": curve.bent,
        }
        for n, smoothed, curvature in zip(curve.n, curve.smoothed, curve.curvature, strict=True)
    ]


def _detector(detector: DetectorResult | None, reason: str) -> Row:
    interval = detector.interval if detector else None
    before = _alarms(detector.before if detector else None)
    return {
        "area": detector.area if detector else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "threshold": detector.threshold if detector else None,
        "false_alarms": detector.false_alarms if detector else None,
        "detected": detector.detected if detector else None,
        "unclear": detector.unclear if detector else None,
        "alarms_from": detector.alarms_from if detector else None,
        "fallen_from": detector.fallen_from if detector else None,
        **{f"before_{name}": value for name, value in before.items()},
        "reason": reason,
    }


def _alarms(alarms: Alarms | None) -> Row:
    return {
        "runs": alarms.of if alarms else None,
        "alarms": alarms.count if alarms else None,
        "share": alarms.share if alarms else None,
        "low": alarms.interval.low if alarms else None,
        "high": alarms.interval.high if alarms else None,
    }


def _scored(run: Scored, threshold: float) -> Row:
    return {
        "run": run.run,
        "replicate": run.replicate,
        "n": run.n,
        "part": "test" if run.tested else "training",
        "kind": run.kind,
        "score": run.score,
        "alarms": run.score > threshold,
    }


def _operating(point: Operating) -> Row:
    return {"threshold": point.threshold, "false_alarms": point.false_alarms, "detected": point.detected}
