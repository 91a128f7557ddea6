"""The analysis ``contention``: where the rate of a pair and the machine's metrics bend over N, and which runs were contended by
the machine's metrics alone.

In: runs with N, their rate, and the metrics of the host ``machine``.  Out, for each combination of the other levels:

* ``curves``: each metric smoothed by LOESS over N, and its second difference, scaled (the LDRD report's Figure 3.2; idle
  metrics are mirrored);
* ``inflections``: where each metric turns, from falling to rising slope or back, ordered by N;
* ``detectors``: the area under the ROC curve on replicates not trained on, with its interval; the shares at its threshold; the
  lead.  The lead has the N from which it alarms, the N from which the rate has fallen, and the share of runs between that
  alarm.  ``reason`` says why there is no detector;
* ``alarms``: the share of test runs that alarm at each N, with its interval, and the loss of rate there;
* ``scores``: the score of each run, with its kind; ``roc``: the ROC curve.

Limits and sources: twinbed.statistics.curvature and .contention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from twinbed import _core
from twinbed.analyses.contention import words
from twinbed.analyses.contention.result import (
    Alarms,
    Contention,
    Curve,
    DetectorResult,
    LevelContention,
    Operating,
    Scored,
    Step,
    Turn,
)
from twinbed.contracts.analysis import Analysis
from twinbed.model.error import TwinbedError
from twinbed.model.result import Interval
from twinbed.model.tables import Tables
from twinbed.observations.numbered import Numbered, OverN, each_by_itself, measured, over_n
from twinbed.show.section import Section
from twinbed.statistics.bounds import Bounds
from twinbed.statistics.contention import Detection, Runs, Share, detect
from twinbed.statistics.curvature import ROUNDING, inflections, scaled, second_difference

MACHINE = "machine"
MIRRORED = "idle"
"""A metric with this word in its name falls where others rise."""
NO_MACHINE = "runs without metrics of the machine"
LEAST = 4
"""A curve needs at least this many tested N to show a bend."""
Floats = NDArray[np.float64]


class ContentionParams(OverN):
    """The settings of ``contention``; null and nothing take the defaults."""

    metrics: tuple[str, ...] = Field(
        default=(),
        alias="metric",
        description="a metric of the machine; may be repeated. Default: all that vary and that every run has",
    )
    curves: tuple[str, ...] = Field(
        default=(), alias="curve", description="draw the curve of this metric only; may be repeated. Default: all"
    )
    bends: bool = Field(default=True, description="make curves; they need several N")
    span: float = Field(default=0.75, gt=0, description="the span of LOESS")
    degree: int = Field(default=2, ge=1, le=2, description="the degree of LOESS")
    drop: float = Field(default=0.05, gt=0, lt=1, description="a run is contended if it lost this share of its rate")
    fallen: float = Field(default=0.10, gt=0, lt=1, description="lost share of the rate before which the detector should alarm")


class ContentionAnalysis(Analysis[ContentionParams, Contention]):
    """Which runs were contended, and do the machine's metrics alone show it early enough?

    Shows where the rate of a pair and the machine's metrics bend as N grows. A detector then learns from the machine's metrics
    whether a run's rate has begun to fall (--drop), before it has fallen too far (--fallen). It is tested on replicates that
    it was not trained on.

    \b
      twinbed analyse contention results/
      twinbed analyse contention results/ --metric cpu_idle --metric interrupts --format csv --table curves
      twinbed analyse contention results/ -o contention.html                                         as a page
    """

    name = "contention"
    params = ContentionParams
    epilog = "docs/capacity.md explains how the detector is trained and what its threshold promises."
    table_names = ("inflections", "curves", "detectors", "alarms", "scores", "roc")

    def run(self, source: Tables, params: ContentionParams | None = None) -> Contention:
        params = params or ContentionParams()
        frame, over, numbered = over_n(source, params)
        machine = measured(source, MACHINE)
        pairs, refused = each_by_itself(numbered, lambda group: _group(group, frame.response, over, machine, params))
        left_out = {**frame.left_out, **refused}
        if absent := sum(absent for _, absent in pairs):
            left_out[NO_MACHINE] = absent
        groups = [group for group, _ in pairs]
        names = frame.source, frame.response, over
        return Contention(*names, params.drop, params.fallen, groups, cautions=frame.cautions, left_out=left_out)

    def section(self, result: Contention) -> Section:
        return words.section(result)


def _group(
    whole: Numbered, rate: str, over: str, machine: Mapping[str, Mapping[str, float]], params: ContentionParams
) -> tuple[LevelContention, int]:
    """Return the result for one combination of levels, and in how many runs the machine was not measured."""
    group = _with_machine(whole, machine)
    known = _known(group, machine, params)
    chosen = {name: values for name, values in known.items() if not params.curves or name in params.curves}
    shown = {rate: np.asarray(group.values), **chosen} if params.bends else {}
    drawn = [_curve(group, name, values, over, params) for name, values in shown.items()]
    turns = sorted(chain.from_iterable(turns for _, turns in drawn), key=lambda turn: (turn.n, turn.metric))
    detector, reason = _detector(group, known, params)
    return LevelContention(group.levels, [curve for curve, _ in drawn], turns, detector, reason), len(whole.runs) - len(
        group.runs
    )


def _with_machine(group: Numbered, machine: Mapping[str, Mapping[str, float]]) -> Numbered:
    """Return the group without runs in which the machine has no value at all; the whole group where no run has one."""
    kept = [row for row, run in enumerate(group.runs) if any(run in by_run for by_run in machine.values())]
    if not kept:
        return group
    return Numbered(
        group.levels,
        [group.n[row] for row in kept],
        [group.values[row] for row in kept],
        [group.runs[row] for row in kept],
        [group.replicates[row] for row in kept],
    )


def _known(group: Numbered, machine: Mapping[str, Mapping[str, float]], params: ContentionParams) -> dict[str, Floats]:
    """Return the machine's metrics of a group's runs. Raises TwinbedError for a requested metric that is missing."""
    known: dict[str, Floats] = {}
    for name, by_run in machine.items():
        metric = name.removesuffix(f"@{MACHINE}")
        if params.metrics and metric not in params.metrics:
            continue
        if all(run in by_run for run in group.runs):
            values = np.array([by_run[run] for run in group.runs])
            if np.ptp(values) > 1e-12 * np.abs(values).max():
                known[metric] = values
    if missing := [name for name in (*params.metrics, *params.curves) if name not in known]:
        raise TwinbedError(
            f"{', '.join(missing)}: the machine has no such metric that varies and that every run has",
            advice=f"available: {', '.join(sorted(known)) or 'none; the study needs an instrument that reads the machine'}",
        )
    return known


def _curve(group: Numbered, name: str, values: Floats, over: str, params: ContentionParams) -> tuple[Curve, list[Turn]]:
    tested = sorted(set(group.n))
    if len(tested) < LEAST:
        raise TwinbedError(
            f"{over} has {len(tested)} levels, and a curve needs at least {LEAST} to show a bend",
            advice=f"add levels of {over} to the study",
        )
    mirrored = MIRRORED in name
    sign = -1.0 if mirrored else 1.0
    try:
        smooth = _core.loess_curve(
            np.asarray(group.n, dtype=np.float64),
            sign * values,
            np.asarray(tested, dtype=np.float64),
            params.span,
            2 if params.degree == 2 else 1,
        )
    except ValueError as error:
        raise TwinbedError(f"{name} over {over}: {error}", advice="a larger span") from error
    bend = scaled(second_difference(tested, smooth))
    turns = [Turn(name, turn.at, turn.rising) for turn in inflections(tested[1:-1], bend)]
    return Curve(name, mirrored, tested, smooth, [None, *bend, None], _bent(group.n, sign * values, smooth)), turns


def _bent(n: Sequence[int], values: Floats, smooth: Sequence[float]) -> float:
    by_n = dict(zip(sorted(set(n)), smooth, strict=True))
    straight = np.polynomial.Polynomial.fit(n, values, 1)(np.asarray(n))
    left = float(((values - straight) ** 2).sum())
    unexplained = float(((values - [by_n[count] for count in n]) ** 2).sum())
    rounding = ROUNDING * float(np.abs(values).max())
    return max(0.0, 1 - unexplained / left) if left > len(values) * rounding**2 else 0.0


def _detector(group: Numbered, known: Mapping[str, Floats], params: ContentionParams) -> tuple[DetectorResult | None, str]:
    if not known:
        return None, "no metric of the machine varies"
    runs = Runs(group.n, group.replicates, group.values, np.column_stack(list(known.values())))
    try:
        detection = detect(runs, params.drop, params.fallen)
    except ValueError as error:
        return None, str(error)
    points = (
        Operating(None if math.isinf(at.threshold) else at.threshold, at.false_alarms, at.detected) for at in detection.curve
    )
    detector = DetectorResult(
        detection.area.value,
        _interval(detection.area.interval),
        detection.detector.threshold,
        detection.false_alarms,
        detection.detected,
        detection.unclear,
        detection.lead.alarmed,
        detection.lead.fallen,
        _alarms(detection.lead.before),
        [Step(step.n, step.lost, _alarms(step.alarms)) for step in detection.lead.steps],
        list(points),
        _scored(group, detection),
    )
    return detector, ""


def _scored(group: Numbered, detection: Detection) -> Sequence[Scored]:
    kinds = [
        "contended" if contended else "free" if free else "unclear"
        for contended, free in zip(detection.kinds.contended, detection.kinds.free, strict=True)
    ]
    return [
        Scored(run, replicate, n, kind, replicate in detection.test, score)
        for run, replicate, n, kind, score in zip(group.runs, group.replicates, group.n, kinds, detection.scores, strict=True)
    ]


def _alarms(share: Share | None) -> Alarms | None:
    if share is None:
        return None
    bounds = share.interval()
    return Alarms(share.count, share.of, Interval(bounds.low, bounds.high, bounds.level))


def _interval(bounds: Bounds | None) -> Interval | None:
    return None if bounds is None else Interval(bounds.low, bounds.high, bounds.level)


analysis = ContentionAnalysis()
