"""Where metrics bend over N, as in the LDRD report's Figure 3.2: smoothed curves, their second differences, inflection points.

They follow the page's colours (see ``plots``), and each mark carries its numbers as its description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from twinbed.analyses.contention.result import Curve, Turn
from twinbed.render.over_n import HEIGHT, MARKS, SHAPES, aside, beside, dashed, ranged
from twinbed.render.plots import MUTED, SERIES, WIDTH, Spec, panels
from twinbed.show.words import metric_name

WIDE = WIDTH + 60
NEAR = 0.05
"""Numbers of turns at least so far apart on the axis are written at one height."""
LEVELS = (1.15, 1.32, 1.49, 1.66, 1.83)
"""Above the curves, whose greatest is 1."""


def bends(curves: Sequence[Curve], turns: Sequence[Turn], many: str) -> Spec:
    """Metrics over N, each scaled to its range; below, their second differences, with inflections numbered in order."""
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
    colour, form = (ranged(names, of, {**MARKS, "columns": 1}) for of in (SERIES, SHAPES))
    below = {**x, "axis": {**x["axis"], "title": many}}
    above = {**x, "axis": {**x["axis"], "title": None, "labels": False, "ticks": False}}
    y = {"field": "value", "type": "quantitative"}
    upper = {**y, "scale": {"domain": [0, 1]}, "axis": {"title": "smoothed, scaled", "values": [0, 0.5, 1], "titlePadding": 8}}
    lower = {
        **y,
        "scale": {"domain": [-1.05, 1.92], "nice": False},
        "axis": {"title": "second difference, scaled", "values": [-1, 0, 1], "titlePadding": 8},
    }
    second: list[Spec] = [
        {
            "data": {"values": [{"value": 0}]},
            "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False},
            "encoding": {"y": lower},
        },
        *_drawn(curvature, below, lower, colour, form),
        {
            "data": {"values": marks},
            "mark": {"type": "rule", "strokeWidth": 0.8, "strokeDash": [1, 2], "color": MUTED, "aria": False},
            "encoding": {"x": below, "y": lower, "y2": {"field": "foot"}},
        },
        *(
            {
                "data": {"values": [mark for mark in marks if mark["shape"] == shape]},
                "mark": {"type": "point", "shape": shape, "filled": True, "size": 90, "opacity": 1},
                "encoding": {"x": below, "y": lower, "color": colour, "description": {"field": "said"}},
            }
            for shape in ("triangle-up", "triangle-down")
        ),
        {
            "data": {"values": marks},
            "mark": {"type": "text", "fontSize": 11, "fontWeight": 600, "aria": False},
            "encoding": {"x": below, "y": {**lower, "field": "label"}, "color": colour, "text": {"field": "place"}},
        },
    ]
    size = {"width": WIDE}
    first = {**size, "height": HEIGHT - 40, "layer": _drawn(smoothed, above, upper, colour, form)}
    return panels([first, {**size, "height": HEIGHT + 30, "layer": second}])


def _drawn(rows: Sequence[Spec], x: Spec, y: Spec, colour: Spec, form: Spec) -> list[Spec]:
    return [
        *dashed(rows, x, y, colour),
        {
            "data": {"values": list(rows)},
            "mark": {"type": "point", "filled": True, "size": 26, "opacity": 0.8},
            "encoding": {"x": x, "y": y, "color": colour, "shape": form, "description": {"field": "said"}},
        },
    ]


def _labels(turns: Sequence[Turn], tested: Sequence[int]) -> list[float]:
    """The height of each turn's number, such that neighbouring numbers do not overlap."""
    across = math.log(tested[-1] / tested[0])
    chosen: list[float] = []
    for at, turn in enumerate(turns):
        near = [chosen[one] for one in range(at) if math.log(turn.n / turns[one].n) < NEAR * across]
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
