"""Pictures: the time of connections by what holds their senders up, and congestion windows over time."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.sockets.result import Limits, Window
from twinbed.render.over_n import LEGEND
from twinbed.render.plots import (
    DIFFERENT,
    EQUIVALENT,
    INCONCLUSIVE,
    INK,
    ROW,
    RULE,
    SERIES,
    WIDTH,
    Spec,
    label_width,
    panels,
    testbed_axis,
)
from twinbed.show.words import cell_title

REASONS = {
    "application": RULE,
    "receive window": DIFFERENT,
    "send buffer": INCONCLUSIVE,
    "network": EQUIVALENT,
}
HEIGHT = 130
MOST = 24
"""Panels; the tables have the rest."""
MOST_LABEL = 220


def reasons(limits: Sequence[Limits]) -> Spec:
    """A panel a cell, a bar a testbed and side."""
    groups: dict[str, list[Limits]] = {}
    for each in limits:
        groups.setdefault(cell_title(each.cell), []).append(each)
    sides = {each.side for each in limits}
    return panels([_reasons(title, group, several=len(sides) > 1) for title, group in list(groups.items())[:MOST]])


def _reasons(title: str, limits: Sequence[Limits], *, several: bool) -> Spec:
    names = [_name(each, several=several) for each in limits]
    rows = [
        {
            "testbed": name,
            "reason": reason,
            "order": list(REASONS).index(reason),
            "percent": 100 * part,
            "said": f"{name}: {reason} {100 * part:.3g} %",
        }
        for name, each in zip(names, limits, strict=True)
        for reason, part in each.parts().items()
    ]
    return {
        "title": title,
        "width": WIDTH,
        "height": {"step": ROW},
        "data": {"values": rows},
        "mark": {"type": "bar", "height": ROW - 8},
        "encoding": {
            "y": testbed_axis(names, label_width(names, MOST_LABEL)),
            "x": {
                "field": "percent",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, 100]},
                "axis": {"title": "% of connections' time", "tickCount": 5, "titleAnchor": "end"},
            },
            "order": {"field": "order"},
            "color": {
                "field": "reason",
                "type": "nominal",
                "sort": list(REASONS),
                "scale": {"domain": list(REASONS), "range": list(REASONS.values())},
                "legend": {**LEGEND, "symbolType": "square", "symbolSize": 100, "symbolStrokeWidth": 0},
            },
            "description": {"field": "said"},
        },
    }


def _name(each: Limits, *, several: bool) -> str:
    return f"{each.testbed}, {each.side}" if several else each.testbed


def over_time(windows: Sequence[Window], testbeds: Sequence[str]) -> Spec:
    """A panel a cell and testbed: every run thin, the one in the middle bold."""
    groups: dict[tuple[str, str], list[Window]] = {}
    for each in windows:
        groups.setdefault((cell_title(each.cell) if each.cell else "", each.testbed), []).append(each)
    of_cell: dict[str, float] = {}
    for (cell, _), group in groups.items():
        of_cell[cell] = max(of_cell.get(cell, 0.0), max(max(each.cwnd) for each in group))
    shown = list(groups.items())[:MOST]
    return panels([_over_time(cell, testbed, group, testbeds, of_cell[cell]) for (cell, testbed), group in shown])


def _over_time(cell: str, testbed: str, windows: Sequence[Window], testbeds: Sequence[str], most: float) -> Spec:
    """Panels of a cell have one scale."""
    colour = SERIES[list(testbeds).index(testbed) % len(SERIES)] if testbed in testbeds else INK
    x: Spec = {
        "field": "seconds",
        "type": "quantitative",
        "scale": {"nice": False},
        "axis": {"title": "s since its first sample", "tickCount": 5, "grid": False, "titleAnchor": "end"},
    }
    y: Spec = {
        "field": "cwnd",
        "type": "quantitative",
        "scale": {"domain": [0, most]},
        "axis": {"title": "segments", "tickCount": 3, "minExtent": 40},
    }

    def line(median: bool, **mark: float) -> Spec:
        rows = [
            {"run": each.run, "seconds": seconds, "cwnd": cwnd}
            for each in windows
            if each.median is median
            for seconds, cwnd in zip(each.seconds, each.cwnd, strict=True)
        ]
        return {
            "data": {"values": rows},
            "mark": {"type": "line", "interpolate": "step-after", "color": colour, "aria": False, **mark},
            "encoding": {"x": x, "y": y, "detail": {"field": "run"}},
        }

    layer = [line(False, strokeWidth=0.7, opacity=0.35), line(True, strokeWidth=1.7)]
    title = " ".join(filter(None, (cell, testbed)))
    return {"title": title, "width": WIDTH, "height": HEIGHT, "layer": layer}
