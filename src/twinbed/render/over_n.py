"""Plots over the number of pairs: every run, the mean of each N, and the line that they are compared with.

A panel for each combination of levels; testbeds are its lines.  They follow the page's colours (see ``plots``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from twinbed.render.plots import DASHES, MUTED, SERIES, WIDTH, Spec, panels

HEIGHT = 190
ROOM = 1.06
"""The room at the ends of a logarithmic axis, so that no mark is cut off."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
APART = 0.012
"""How far apart lines are drawn, as a share of the axis, 5 pixels: of marks that are equal all are seen."""

LEGEND: Spec = {
    "title": None,
    "orient": "top",
    "labelLimit": 280,
    "columns": 2,
    "columnPadding": 16,
    "symbolType": "stroke",
    "symbolSize": 300,
    "symbolStrokeWidth": 2,
    "labelColor": MUTED,
    "offset": 4,
}
"""The legend of lines, above a plot."""
MARKS: Spec = {key: value for key, value in LEGEND.items() if not key.startswith("symbol")} | {"symbolOpacity": 1}
"""Opacity of marks, which shapes distinguish too."""


def aside(names: Sequence[str], tested: Sequence[int]) -> Mapping[str, float]:
    """Return line -> the factor of its N, so that lines lie next to each other, the middle one in its place."""
    step = (tested[-1] / tested[0]) ** APART
    return {name: step ** (at - (len(names) - 1) / 2) for at, name in enumerate(names)}


def beside(names: Sequence[str], tested: Sequence[int], many: str) -> Spec:
    """``of_n`` with room at its ends for lines that are drawn ``aside``."""
    factors = aside(names, tested).values()
    x = of_n(tested, many)
    x["scale"] = {**x["scale"], "domain": [tested[0] / ROOM * min(factors), tested[-1] * ROOM * max(factors)]}
    return x


def ranged(names: Sequence[str], of: Sequence[object], legend: Spec | None, field: str = "series") -> Spec:
    """Return how lines are distinguished: by colours, dashes or shapes, each in its order."""
    scale = {"domain": list(names), "range": [of[at % len(of)] for at in range(len(names))]}
    return {"field": field, "type": "nominal", "sort": list(names), "scale": scale, "legend": legend}


def dashed(rows: Sequence[Spec], x: Spec, y: Spec, colour: Spec) -> list[Spec]:
    """Return a layer a line, each with its dashes: encoded, they would be drawn around the marks of a legend too."""
    return [
        {
            "data": {"values": [row for row in rows if row["series"] == name]},
            "mark": {"type": "line", "strokeWidth": 1.8, "strokeDash": DASHES[at % len(DASHES)], "aria": False},
            "encoding": {"x": x, "y": y, "color": colour},
        }
        for at, name in enumerate(colour["sort"])
    ]


@dataclass(frozen=True, slots=True)
class Line:
    """One series: values of runs by N, and the ends of the line that they are compared with, if there is one."""

    name: str
    values: Sequence[tuple[int, Sequence[float]]]
    held: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    lines: Sequence[Line]


def over_n(shown: Sequence[Panel], many: str, axis: str, *, logarithmic: bool = False, points: bool = True) -> Spec:
    """``many`` is what N counts, ``axis`` what is drawn; ``points`` False draws the means alone."""
    names = list(dict.fromkeys(line.name for panel in shown for line in panel.lines))
    return panels([_panel(panel, names, many, axis, logarithmic, points) for panel in shown])


def of_n(tested: Sequence[int], many: str) -> Spec:
    """Return the horizontal axis: N on a logarithmic scale, with a tick for each N tested."""
    return {
        "field": "n",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [tested[0] / ROOM, tested[-1] * ROOM], "nice": False},
        "axis": {
            "title": many,
            "values": list(tested),
            "format": "d",
            "grid": False,
            "labelOverlap": "greedy",
            "labelSeparation": 5,
        },
    }


def _panel(panel: Panel, names: Sequence[str], many: str, axis: str, logarithmic: bool, points: bool) -> Spec:
    tested = sorted({n for line in panel.lines for n, _ in line.values})
    x = beside(names, tested, many)
    drawn = [value for line in panel.lines for _, values in line.values for value in values]
    drawn += [value for line in panel.lines for _, value in line.held]
    scale: Spec = {"type": "log", "domain": [min(drawn) / ROOM, max(drawn) * ROOM]} if logarithmic else {"zero": points}
    ticks: Spec = {"tickCount": 4}
    if logarithmic:
        # Where hardly a round number is in it: any, each with its label (Vega leaves some out on logarithmic axes).
        rounded = _round(min(drawn), max(drawn))
        ticks = {"values": rounded} if len(rounded) > 1 else {**ticks, "labelExpr": "format(datum.value, ',.6~g')"}
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": scale,
        "axis": {"title": axis, "format": ",.6~g", "titlePadding": 8, **ticks},
    }
    colour, shape = (ranged(names, of, MARKS if len(names) > 1 else None) for of in (SERIES, SHAPES))
    means = [_row(line, n, fmean(values), "mean" if points else "") for line in panel.lines for n, values in line.values]
    factors = aside(names, tested)
    single_runs = [_row(line, n, value, "a run") for line in panel.lines for n, values in line.values for value in values]
    for row in (*means, *single_runs):
        row["n"] *= factors[row["series"]]
    held = [_row(line, n, value, "") for line in panel.lines for n, value in line.held]
    layers: list[Spec] = [
        {
            "data": {"values": held},
            "mark": {"type": "line", "color": MUTED, "strokeDash": [3, 3], "strokeWidth": 1.2, "clip": True, "aria": False},
            "encoding": {"x": x, "y": y, "detail": {"field": "series"}},
        },
        *dashed(means, x, y, colour),
        {
            "data": {"values": single_runs if points else means},
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 0.65},
            "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "description": {"field": "said"}},
        },
    ]
    return {"title": panel.title, "width": WIDTH + 60, "height": HEIGHT, "layer": layers if held else layers[1:]}


def _round(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two positive numbers; of more than two decades the powers alone."""
    steps = (1, 2, 5) if high / low < 100 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [value for power in powers for step in steps if low / ROOM <= (value := step * 10.0**power) <= high * ROOM]


def _row(line: Line, n: int, value: float, what: str) -> Spec:
    label = f"N = {n}: {value:.4g}{f' ({what})' if what else ''}"
    return {"series": line.name, "n": n, "value": value, "said": f"{line.name}, {label}" if line.name else label}
