"""Draw contention: metrics that bend over N, the detector's scores, how early it alarms, and its ROC curve.

Curves are as in the LDRD report's Figure 3.2.  Each mark carries its numbers as its description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from twinbed.analyses.contention.result import Contention, Curve, DetectorResult, Step, Turn
from twinbed.render.over_n import HEIGHT, LEGEND, MARKS, aside, beside, dashed, of_n, ranged
from twinbed.render.over_n import SHAPES as FORMS
from twinbed.render.plots import (
    BAND,
    DIFFERENT,
    EQUIVALENT,
    INCONCLUSIVE,
    INK,
    MUTED,
    RULE,
    SERIES,
    WIDTH,
    Spec,
    axis,
    layer,
    panels,
)
from twinbed.show.quantities import share
from twinbed.show.words import metric_name

WIDE = WIDTH + 60
SQUARE = 230
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
APART = 0.035
"""How far apart the runs of one N are drawn, as a share of N."""
KINDS = {"contended": DIFFERENT, "free": EQUIVALENT, "unclear": INCONCLUSIVE}
NAMES = {"contended": "contended", "free": "free of contention", "unclear": "unclear"}
SHAPES = ["circle", "square", "triangle-up"]
SAID = {"description": {"field": "said"}}
SHARES = {"format": "%", "values": [0, 0.25, 0.5, 0.75, 1]}
NEAR = 0.05
"""Numbers of turns at least this far apart on the axis are written at one height."""
LEVELS = (1.15, 1.32, 1.49, 1.66, 1.83)
"""Above the curves, whose greatest is 1."""


def bends(curves: Sequence[Curve], turns: Sequence[Turn], many: str) -> Spec:
    """Return metrics over N, each scaled to its range; below, their second differences, with inflections numbered in order."""
    names = [_named(curve) for curve in curves]
    x, factors = beside(names, curves[0].n, many), aside(names, curves[0].n)
    smoothed = [
        _row(_named(curve), n, value) for curve in curves for n, value in zip(curve.n, _between(curve.smoothed), strict=True)
    ]
    curvature = [
        _row(_named(curve), n, value)
        for curve in curves
        for n, value in zip(curve.n, curve.curvature, strict=True)
        if value is not None
    ]
    for row in (*smoothed, *curvature):
        row["n"] *= factors[row["series"]]
    by_metric = {curve.metric: _named(curve) for curve in curves}
    marks = [
        {
            "series": by_metric[turn.metric],
            "n": turn.n,
            "value": 0.0,
            "label": label,
            "foot": label - 0.09,
            "place": str(at),
            "shape": "triangle-up" if turn.rises else "triangle-down",
            "said": f"{at}. {by_metric[turn.metric]}: the slope begins to {_way(turn)} at N = {turn.n:.3g}",
        }
        for at, (turn, label) in enumerate(zip(turns, _labels(turns, curves[0].n), strict=True), 1)
    ]
    # Names of metrics are long: two side by side would be cut off.
    colour, form = (ranged(names, of, {**MARKS, "columns": 1}) for of in (SERIES, FORMS))
    below = {**x, "axis": {**x["axis"], "title": many}}
    above = {**x, "axis": {**x["axis"], "title": None, "labels": False, "ticks": False}}
    upper = axis("value", "smoothed, scaled", {"domain": [0, 1]}, values=[0, 0.5, 1], titlePadding=8)
    scale = {"domain": [-1.05, 1.92], "nice": False}
    lower = axis("value", "second difference, scaled", scale, values=[-1, 0, 1], titlePadding=8)
    stems, labels = {"y": lower, "y2": {"field": "foot"}}, {"y": {**lower, "field": "label"}, "text": {"field": "place"}}
    second: list[Spec] = [
        layer([{"value": 0}], "rule", {"y": lower}, color=MUTED, strokeDash=[3, 3], aria=False),
        *_drawn(curvature, below, lower, colour, form),
        layer(marks, "rule", {"x": below, **stems}, strokeWidth=0.8, strokeDash=[1, 2], color=MUTED, aria=False),
        *(
            layer(
                [mark for mark in marks if mark["shape"] == shape],
                "point",
                {"x": below, "y": lower, "color": colour, **SAID},
                shape=shape,
                filled=True,
                size=90,
                opacity=1,
            )
            for shape in ("triangle-up", "triangle-down")
        ),
        layer(marks, "text", {"x": below, **labels, "color": colour}, fontSize=11, fontWeight=600, aria=False),
    ]
    size = {"width": WIDE}
    first = {**size, "height": HEIGHT - 40, "layer": _drawn(smoothed, above, upper, colour, form)}
    return panels([first, {**size, "height": HEIGHT + 30, "layer": second}])


def _drawn(rows: Sequence[Spec], x: Spec, y: Spec, colour: Spec, form: Spec) -> list[Spec]:
    marked = {"x": x, "y": y, "color": colour, "shape": form, **SAID}
    return [*dashed(rows, x, y, colour), layer(rows, "point", marked, filled=True, size=26, opacity=0.8)]


def _labels(turns: Sequence[Turn], tested: Sequence[int]) -> list[float]:
    """Return the height of each turn's number, such that neighbouring numbers do not overlap."""
    across = math.log(tested[-1] / tested[0])
    chosen: list[float] = []
    for at, turn in enumerate(turns):
        near = [chosen[other] for other in range(at) if math.log(turn.n / turns[other].n) < NEAR * across]
        chosen.append(next((level for level in LEVELS if level not in near), LEVELS[at % len(LEVELS)]))
    return chosen


def _between(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]


def _named(curve: Curve) -> str:
    return f"{metric_name(curve.metric)}{' (mirrored)' if curve.mirrored else ''}"


def _row(name: str, n: int, value: float) -> Spec:
    return {"series": name, "n": n, "value": value, "said": f"{name}, N = {n}: {value:.3g}"}


def _way(turn: Turn) -> str:
    return "rise" if turn.rises else "fall"


def roc(detector: DetectorResult) -> Spec:
    """Return the ROC curve of runs that the detector was not trained on, with the point of its own threshold."""
    points = [{"x": at.false_alarms, "y": at.detected, "order": order} for order, at in enumerate(detector.curve)]
    own = {
        "x": detector.false_alarms,
        "y": detector.detected,
        "text": "its threshold",
        "said": f"its threshold: {share(detector.detected)} of contended runs, {share(detector.false_alarms)} false alarms",
    }
    interval = "" if detector.interval is None else f" ({detector.interval.low:.3f} to {detector.interval.high:.3f})"
    area = {"x": 0.97, "y": 0.06, "text": f"area {detector.area:.3f}{interval}"}
    x = axis("x", "false alarms", {"domain": [0, 1]}, **SHARES, titlePadding=6)
    y = axis("y", "contended runs found", {"domain": [0, 1]}, **SHARES, titlePadding=6)
    at, text = {"x": x, "y": y}, {"x": x, "y": y, "text": {"field": "text"}}
    layers: list[Spec] = [
        layer([{"x": 0, "y": 0}, {"x": 1, "y": 1}], "line", at, color=MUTED, strokeDash=[3, 3], strokeWidth=1, aria=False),
        layer(points, "line", {**at, "order": {"field": "order"}}, color=INK, strokeWidth=2, aria=False),
        layer([own], "point", {**at, **SAID}, filled=True, size=110, opacity=1, color=DIFFERENT),
        layer([own], "text", text, align="left", dx=10, dy=14, fontSize=12, color=DIFFERENT),
        layer([area], "text", text, align="right", baseline="bottom", fontSize=12, color=INK),
    ]
    return panels([{"width": WIDE, "height": SQUARE, "layer": layers}])


def scores(detector: DetectorResult, tested: Sequence[int], many: str) -> Spec:
    """Return each test run's score over N, by its kind; the detector alarms above the line."""
    runs = [run for run in detector.runs if run.tested]
    replicates = sorted({run.replicate for run in runs})
    middle = (len(replicates) - 1) / 2
    rows = [
        {
            "n": run.n * (1 + APART) ** ((replicates.index(run.replicate) - middle) / max(middle, 1)),
            "value": run.score - detector.threshold,
            "kind": NAMES[run.kind],
            "said": f"N = {run.n}, replicate {run.replicate}: {run.score - detector.threshold:+.3g}, {NAMES[run.kind]}",
        }
        for run in runs
    ]
    x = of_n(tested, many)
    low, high = x["scale"]["domain"]
    x["scale"] = {**x["scale"], "domain": [low / (1 + APART), high * (1 + APART)]}
    y = axis(
        "value",
        "score above the threshold",
        {"type": "symlog", "constant": 1, "domain": _around([row["value"] for row in rows])},
        values=sorted({0, *TICKS, *(-tick for tick in TICKS)}),
        titlePadding=8,
        labelExpr="datum.value ? format(datum.value, '+') : '0'",
    )
    present = [kind for kind in KINDS if any(run.kind == kind for run in runs)]
    domain = [NAMES[kind] for kind in present]
    shapes = [SHAPES[list(KINDS).index(kind)] for kind in present]
    colour, shape = ({**ranged(domain, of, MARKS), "field": "kind"} for of in ([KINDS[kind] for kind in present], shapes))
    threshold = [{"value": 0, "said": "the threshold: above it the detector alarms"}]
    marked = {"x": x, "y": y, "color": colour, "shape": shape, **SAID}
    layers: list[Spec] = [
        layer(threshold, "rule", {"y": y, **SAID}, color=INK, strokeDash=[6, 3], strokeWidth=1.4),
        layer(rows, "point", marked, filled=True, size=36, opacity=0.75),
    ]
    return panels([{"width": WIDE, "height": SQUARE, "layer": layers}])


def _around(values: Sequence[float]) -> list[float]:
    """Return a domain with some room that includes 0."""
    return [min(*values, -1.0) * 1.15, max(*values, 1.0) * 1.15]


def early(contention: Contention, detector: DetectorResult) -> Spec:
    """Return the share of test runs that alarm, with intervals, and the remaining rate, over N. The shaded N have lost too
    much."""
    x = of_n([step.n for step in detector.steps], f"{contention.noun}s")
    right = x["scale"]["domain"][1]
    y = axis("value", "share", {"domain": [0, 1.02], "nice": False}, **SHARES, titlePadding=8)
    least = min(step.n for step in detector.steps)
    alarm, left = "runs that alarm", f"remaining rate, relative to {least} {contention.noun}"
    ranges: Sequence[Sequence[object]] = ((DIFFERENT, INK), ([1, 0], [6, 3]))
    colour, dash = (ranged([alarm, left], of, LEGEND) for of in ranges)
    rows = [row for step in detector.steps for row in _early(step, alarm, left)]
    layers: list[Spec] = []
    if detector.fallen_from is not None:
        label = f"from {detector.fallen_from} on the rate has fallen by {share(contention.fallen)} or more"
        band = [{"n": detector.fallen_from, "to": right, "said": label}]
        layers.append(layer(band, "rect", {"x": x, "x2": {"field": "to"}, **SAID}, color=BAND))
    if detector.alarms_from is not None:
        label = f"from {detector.alarms_from} on most runs alarm"
        from_there = [{"n": detector.alarms_from, "said": label}]
        layers.append(layer(from_there, "rule", {"x": x, **SAID}, color=DIFFERENT, strokeDash=[3, 3], strokeWidth=1.4))
    bounded, span = [row for row in rows if "low" in row], {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers += [
        layer([{"value": 1 - contention.fallen}], "rule", {"y": y}, color=RULE, strokeWidth=1.4, aria=False),
        layer(rows, "line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, strokeWidth=1.8, aria=False),
        layer(bounded, "rule", span, strokeWidth=1.6, color=DIFFERENT, aria=False),
        layer(rows, "point", {"x": x, "y": y, "color": colour, **SAID}, filled=True, size=44, opacity=1),
    ]
    return panels([{"width": WIDE, "height": SQUARE, "layer": layers}])


def _early(step: Step, alarm: str, left: str) -> list[Spec]:
    rate = 1 - step.lost
    rows: list[Spec] = [
        {"series": left, "n": step.n, "value": rate, "said": f"N = {step.n}: {share(round(rate, 4))} of the rate remains"}
    ]
    if step.alarms is not None:
        bounds = {"low": step.alarms.interval.low, "high": step.alarms.interval.high}
        label = f"N = {step.n}: {step.alarms.count} of {step.alarms.of} runs alarm"
        rows.append({"series": alarm, "n": step.n, "value": step.alarms.share, **bounds, "said": label})
    return rows
