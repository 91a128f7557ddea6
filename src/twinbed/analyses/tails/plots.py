"""The tail as pictures: what share of requests takes longer, on logarithmic axes, and the shift function."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TypeVar

from twinbed.analyses.tails.result import Shift, Tail
from twinbed.analyses.tails.tables import quantile_name
from twinbed.render.over_n import LEGEND
from twinbed.render.plots import BAND, DASHES, SERIES, WIDTH, Spec, panels
from twinbed.show.quantities import number, ratio_with_interval, unit_scale
from twinbed.show.words import cell_title

HEIGHT = 170
TITLE = 36
"""Characters of a line above a plot."""
MOST_CELLS = 12
"""Panels in a picture; the table has the rest."""


def survival(tails: Sequence[Tail], testbeds: Sequence[str]) -> Spec:
    """A panel a cell, a line a testbed with a dot at each quantile: time against the share of requests that take longer."""
    return panels([_survival(group, testbeds) for group in _by_cell(tails)])


def shift(shifts: Sequence[Shift], testbeds: Sequence[str], margin: float) -> Spec:
    """A panel a cell: the ratio of each quantile with its interval, over the band of the margin; each testbed, the reference
    among them, in the colour that it has in the other picture."""
    return panels([_shift(group, testbeds, margin) for group in _by_cell(shifts)])


OfCell = TypeVar("OfCell", Tail, Shift)


def _by_cell(rows: Sequence[OfCell]) -> list[list[OfCell]]:
    groups: dict[str, list[OfCell]] = {}
    for each in rows:
        groups.setdefault(cell_title(each.cell), []).append(each)
    return list(groups.values())[:MOST_CELLS]


def _series(testbeds: Sequence[str]) -> tuple[Spec, Spec]:
    domain = list(testbeds)
    colour: Spec = {
        "field": "testbed",
        "type": "nominal",
        "sort": domain,
        "scale": {"domain": domain, "range": [SERIES[at % len(SERIES)] for at in range(len(domain))]},
        "legend": LEGEND,
    }
    dash: Spec = {**colour, "scale": {"domain": domain, "range": [DASHES[at % len(DASHES)] for at in range(len(domain))]}}
    return colour, dash


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
    x = {
        "field": "time",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {"title": f"time of a request ({scale.unit})", "format": "~g", "tickCount": 5, "grid": False},
    }
    y = {
        "field": "share",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [0.0009, 1]},
        "axis": {"title": "of requests take longer", "format": "~%", "values": [0.001, 0.01, 0.1, 0.5, 1], "minExtent": 40},
    }
    return _lines(cell_title(tails[0].cell), rows, (x, y), testbeds)


def _shift(shifts: Sequence[Shift], testbeds: Sequence[str], margin: float) -> Spec:
    edges = [{"low": 1 / (1 + margin), "high": 1 + margin}]
    rows = [
        {
            "testbed": each.testbed,
            "quantile": quantile_name(each.share),
            "ratio": each.ratio,
            "low": each.interval.low if each.interval else each.ratio,
            "high": each.interval.high if each.interval else each.ratio,
            "said": f"{each.testbed}, {quantile_name(each.share)}: "
            + ratio_with_interval(each.ratio, *((each.interval.low, each.interval.high) if each.interval else (None, None))),
        }
        for each in shifts
        if each.ratio
    ]
    names = list(dict.fromkeys(quantile_name(each.share) for each in shifts))
    x = {
        "field": "quantile",
        "type": "ordinal",
        "sort": names,
        "axis": {"title": "quantile of requests", "labelAngle": -45, "grid": False},
    }
    y = {
        "field": "ratio",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "clamp": True},
        "axis": {"title": f"ratio to {shifts[0].reference}", "format": "~g", "tickCount": 5, "minExtent": 40},
    }
    band: Spec = {
        "data": {"values": edges},
        "mark": {"type": "rect", "color": BAND, "aria": False},
        "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    colour, _ = _series(testbeds)
    others = list(dict.fromkeys(each.testbed for each in shifts))
    colour = {**colour, "legend": {**LEGEND, "values": others}}
    bars: Spec = {
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeWidth": 1.5},
        "encoding": {
            "x": x,
            "xOffset": {"field": "testbed", "type": "nominal", "sort": others},
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": colour,
            "description": {"field": "said"},
        },
    }
    points: Spec = {
        "data": {"values": rows},
        "mark": {"type": "circle", "size": 36, "opacity": 1},
        "encoding": {
            "x": x,
            "xOffset": {"field": "testbed", "type": "nominal", "sort": others},
            "y": y,
            "color": colour,
            "description": {"field": "said"},
        },
    }
    layer = [band, bars, points]
    return {"title": _title(cell_title(shifts[0].cell)), "width": WIDTH, "height": HEIGHT, "layer": layer}


def _lines(title: str, rows: Sequence[Spec], axes: tuple[Spec, Spec], testbeds: Sequence[str]) -> Spec:
    x, y = axes
    colour, dash = _series(testbeds)
    encoding = {"x": x, "y": y, "color": colour, "description": {"field": "said"}}
    line: Spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 1.8, "aria": False},
        "encoding": {**encoding, "strokeDash": dash},
    }
    dots: Spec = {"data": {"values": rows}, "mark": {"type": "circle", "size": 22, "opacity": 0.8}, "encoding": encoding}
    return {"title": _title(title), "width": WIDTH, "height": HEIGHT, "layer": [line, dots]}


def _title(cell: str) -> list[str]:
    """In lines that are no wider than the plot."""
    return textwrap.wrap(cell or "all requests", TITLE)
