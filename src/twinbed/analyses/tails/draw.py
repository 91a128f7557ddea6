"""Draw the tail: the share of requests that take longer, on logarithmic axes, and the shift function."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.tails.result import Shift, Tail, Tails, quantile_name
from twinbed.render.over_n import LEGEND, ranged
from twinbed.render.plots import BAND, DASHES, SERIES, Spec, axis, layer, panelled
from twinbed.show.figure import Figure
from twinbed.show.quantities import number, ratio_with_interval, unit_scale
from twinbed.show.words import cell_title

HEIGHT = 170
MOST_CELLS = 12
"""Panels in a figure; the table has the rest."""


def survival(result: Tails) -> tuple[Figure | str, ...]:
    """Return a panel a cell, a line a testbed with a dot at each quantile: time against the share of requests that take
    longer."""

    def panel(tails: Sequence[Tail]) -> Spec:
        return _survival(tails, _testbeds(result))

    caption = "The share of requests that take longer than a given time, by testbed."
    return panelled("times of requests tails", caption, result.tails, lambda tail: cell_title(tail.cell), panel, MOST_CELLS)


def shift(result: Tails) -> tuple[Figure | str, ...]:
    """Return a panel a cell: the ratio of each quantile with its interval, over the band of the margin. Testbeds have the
    colours of ``survival``, where the reference has one too."""

    def panel(shifts: Sequence[Shift]) -> Spec:
        return _shift(shifts, _testbeds(result), result.margin)

    name = "times of requests shift function"
    caption = f"Ratio of each quantile to {result.reference}'s, with its interval. The band is the margin."
    return panelled(name, caption, result.shifts, lambda entry: cell_title(entry.cell), panel, MOST_CELLS)


def _testbeds(result: Tails) -> list[str]:
    return list(dict.fromkeys(tail.testbed for tail in result.tails))


def _survival(tails: Sequence[Tail], testbeds: Sequence[str]) -> Spec:
    values = [seconds for tail in tails for seconds in tail.quantiles.values()]
    scale = unit_scale("s", [max(values, default=0.0)])
    rows = [
        {
            "testbed": tail.testbed,
            "time": seconds / scale.factor,
            "share": 1 - share,
            "said": f"{tail.testbed}: {100 * (1 - share):.3g} % of requests take longer than "
            f"{number(seconds / scale.factor)} {scale.unit}",
        }
        for tail in tails
        for share, seconds in tail.quantiles.items()
        if seconds > 0
    ]
    x = axis("time", f"time of a request ({scale.unit})", {"type": "log", "nice": False}, format="~g", tickCount=5, grid=False)
    shares = {"type": "log", "domain": [0.0009, 1]}
    y = axis("share", "of requests take longer", shares, format="~%", values=[0.001, 0.01, 0.1, 0.5, 1], minExtent=40)
    colour, dash = (ranged(testbeds, of, LEGEND, "testbed") for of in (SERIES, DASHES))
    encoding = {"x": x, "y": y, "color": colour, "description": {"field": "said"}}
    line = layer(rows, "line", {**encoding, "strokeDash": dash}, strokeWidth=1.8, aria=False)
    dots = layer(rows, "circle", encoding, size=22, opacity=0.8)
    return {"height": HEIGHT, "layer": [line, dots]}


def _shift(shifts: Sequence[Shift], testbeds: Sequence[str], margin: float) -> Spec:
    edges = [{"low": 1 / (1 + margin), "high": 1 + margin}]
    rows = [
        {
            "testbed": entry.testbed,
            "quantile": quantile_name(entry.share),
            "ratio": entry.ratio,
            "low": entry.interval.low if entry.interval else entry.ratio,
            "high": entry.interval.high if entry.interval else entry.ratio,
            "said": f"{entry.testbed}, {quantile_name(entry.share)}: {ratio_with_interval(entry.ratio, *entry.bounds)}",
        }
        for entry in shifts
        if entry.ratio
    ]
    names = list(dict.fromkeys(quantile_name(entry.share) for entry in shifts))
    x = {
        "field": "quantile",
        "type": "ordinal",
        "sort": names,
        "axis": {"title": "quantile of requests", "labelAngle": -45, "grid": False},
    }
    times = {"type": "log", "nice": False, "clamp": True}
    y = axis("ratio", f"ratio to {shifts[0].reference}", times, format="~g", tickCount=5, minExtent=40)
    band = layer(edges, "rect", {"y": {**y, "field": "low"}, "y2": {"field": "high"}}, color=BAND, aria=False)
    others = list(dict.fromkeys(entry.testbed for entry in shifts))
    encoding: Spec = {
        "x": x,
        "xOffset": {"field": "testbed", "type": "nominal", "sort": others},
        "color": ranged(testbeds, SERIES, {**LEGEND, "values": others}, "testbed"),
        "description": {"field": "said"},
    }
    bars = layer(rows, "rule", {**encoding, "y": {**y, "field": "low"}, "y2": {"field": "high"}}, strokeWidth=1.5)
    points = layer(rows, "circle", {**encoding, "y": y}, size=36, opacity=1)
    return {"height": HEIGHT, "layer": [band, bars, points]}
