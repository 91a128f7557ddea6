"""A detector of contended runs as pictures: scores over N, how early it alarms, and the ROC curve.

They follow the page's colours (see ``plots``), and each mark carries its numbers as its description.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.contention.result import Contention, DetectorResult, Step
from twinbed.render.over_n import LEGEND, MARKS, of_n
from twinbed.render.plots import BAND, DIFFERENT, EQUIVALENT, INCONCLUSIVE, INK, MUTED, RULE, WIDTH, Spec, panels
from twinbed.show.quantities import share

WIDE = WIDTH + 60
SQUARE = 230
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
APART = 0.035
"""How far apart the runs of one N are drawn, as a share of N."""
KINDS = {"contended": DIFFERENT, "free": EQUIVALENT, "unclear": INCONCLUSIVE}
NAMES = {"contended": "contended", "free": "free of contention", "unclear": "neither for sure"}
SHAPES = ["circle", "square", "triangle-up"]


def roc(detector: DetectorResult) -> Spec:
    """The ROC curve of runs that the detector was not trained on, with the point of its own threshold."""
    points = [{"x": at.false_alarms, "y": at.detected, "order": order} for order, at in enumerate(detector.curve)]
    own = {
        "x": detector.false_alarms,
        "y": detector.detected,
        "text": "its threshold",
        "said": f"its threshold: {share(detector.detected)} of contended runs, {share(detector.false_alarms)} false alarms",
    }
    interval = "" if detector.interval is None else f" ({detector.interval.low:.3f} to {detector.interval.high:.3f})"
    area = {"x": 0.97, "y": 0.06, "text": f"area {detector.area:.3f}{interval}"}
    axis = {"values": [0, 0.25, 0.5, 0.75, 1], "format": "%", "titlePadding": 6}
    x = {"field": "x", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**axis, "title": "false alarms"}}
    y = {"field": "y", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": {**axis, "title": "contended runs found"}}
    text = {"x": x, "y": y, "text": {"field": "text"}}
    layers: list[Spec] = [
        {
            "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
            "mark": {"type": "line", "color": MUTED, "strokeDash": [3, 3], "strokeWidth": 1, "aria": False},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": points},
            "mark": {"type": "line", "color": INK, "strokeWidth": 2, "aria": False},
            "encoding": {"x": x, "y": y, "order": {"field": "order"}},
        },
        {
            "data": {"values": [own]},
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1, "color": DIFFERENT},
            "encoding": {"x": x, "y": y, "description": {"field": "said"}},
        },
        {
            "data": {"values": [own]},
            "mark": {"type": "text", "align": "left", "dx": 10, "dy": 14, "fontSize": 12, "color": DIFFERENT},
            "encoding": text,
        },
        {
            "data": {"values": [area]},
            "mark": {"type": "text", "align": "right", "baseline": "bottom", "fontSize": 12, "color": INK},
            "encoding": text,
        },
    ]
    return panels([{"width": WIDE, "height": SQUARE, "layer": layers}])


def scores(detector: DetectorResult, tested: Sequence[int], many: str) -> Spec:
    """Each test run's score over N, by its kind; the detector alarms above the line."""
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
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "symlog", "constant": 1, "domain": _around([row["value"] for row in rows])},
        "axis": {
            "title": "score above the threshold",
            "values": sorted({0, *TICKS, *(-tick for tick in TICKS)}),
            "titlePadding": 8,
            "labelExpr": "datum.value ? format(datum.value, '+') : '0'",
        },
    }
    there = [kind for kind in KINDS if any(run.kind == kind for run in runs)]
    domain = [NAMES[kind] for kind in there]
    colour = {
        "field": "kind",
        "type": "nominal",
        "sort": domain,
        "scale": {"domain": domain, "range": [KINDS[kind] for kind in there]},
        "legend": MARKS,
    }
    shape = {**colour, "scale": {"domain": domain, "range": [SHAPES[list(KINDS).index(kind)] for kind in there]}}
    layers: list[Spec] = [
        {
            "data": {"values": [{"value": 0, "said": "the threshold: above it the detector alarms"}]},
            "mark": {"type": "rule", "color": INK, "strokeDash": [6, 3], "strokeWidth": 1.4},
            "encoding": {"y": y, "description": {"field": "said"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 36, "opacity": 0.75},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "description": {"field": "said"}},
        },
    ]
    return panels([{"width": WIDE, "height": SQUARE, "layer": layers}])


def _around(values: Sequence[float]) -> list[float]:
    """A scale with some room that includes 0."""
    return [min(*values, -1.0) * 1.15, max(*values, 1.0) * 1.15]


def early(contention: Contention, detector: DetectorResult) -> Spec:
    """The share of test runs that alarm, with intervals, and the rate that is left, over N; shaded: fallen by what matters."""
    x = of_n([step.n for step in detector.steps], f"{contention.one}s")
    right = x["scale"]["domain"][1]
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, 1.02], "nice": False},
        "axis": {"title": "share", "format": "%", "values": [0, 0.25, 0.5, 0.75, 1], "titlePadding": 8},
    }
    alarm, left = "runs that alarm", f"rate left, of that at {min(step.n for step in detector.steps)} {contention.one}"
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": [alarm, left],
        "scale": {"domain": [alarm, left], "range": [DIFFERENT, INK]},
        "legend": LEGEND,
    }
    dash = {**colour, "scale": {"domain": [alarm, left], "range": [[1, 0], [6, 3]]}}
    rows = [row for step in detector.steps for row in _early(step, alarm, left)]
    layers: list[Spec] = []
    if detector.fallen_from is not None:
        label = f"from {detector.fallen_from} on the rate has fallen by {share(contention.fallen)} or more"
        layers.append(
            {
                "data": {"values": [{"n": detector.fallen_from, "to": right, "said": label}]},
                "mark": {"type": "rect", "color": BAND},
                "encoding": {"x": x, "x2": {"field": "to"}, "description": {"field": "said"}},
            }
        )
    if detector.alarms_from is not None:
        label = f"from {detector.alarms_from} on most runs alarm"
        layers.append(
            {
                "data": {"values": [{"n": detector.alarms_from, "said": label}]},
                "mark": {"type": "rule", "color": DIFFERENT, "strokeDash": [3, 3], "strokeWidth": 1.4},
                "encoding": {"x": x, "description": {"field": "said"}},
            }
        )
    layers += [
        {
            "data": {"values": [{"value": 1 - contention.fallen}]},
            "mark": {"type": "rule", "color": RULE, "strokeWidth": 1.4, "aria": False},
            "encoding": {"y": y},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.8, "aria": False},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
        },
        {
            "data": {"values": [row for row in rows if "low" in row]},
            "mark": {"type": "rule", "strokeWidth": 1.6, "color": DIFFERENT, "aria": False},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 44, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "description": {"field": "said"}},
        },
    ]
    return panels([{"width": WIDE, "height": SQUARE, "layer": layers}])


def _early(step: Step, alarm: str, left: str) -> list[Spec]:
    rate = 1 - step.lost
    rows: list[Spec] = [
        {"series": left, "n": step.n, "value": rate, "said": f"N = {step.n}: {share(round(rate, 4))} of the rate left"}
    ]
    if step.alarms is not None:
        interval = step.alarms.interval
        label = f"N = {step.n}: {step.alarms.count} of {step.alarms.of} runs alarm"
        rows.append(
            {
                "series": alarm,
                "n": step.n,
                "value": step.alarms.share,
                "low": interval.low,
                "high": interval.high,
                "said": label,
            }
        )
    return rows
