"""Draw the time of connections by the reason for which their senders wait, and congestion windows over time."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.sockets.result import Limits, Senders, Window
from twinbed.render.over_n import LEGEND, ranged
from twinbed.render.plots import (
    DIFFERENT,
    EQUIVALENT,
    INCONCLUSIVE,
    INK,
    ROW,
    RULE,
    SERIES,
    Spec,
    axis,
    label_width,
    layer,
    panelled,
    testbed_axis,
)
from twinbed.show.figure import Figure
from twinbed.show.words import cell_title

REASONS = {
    "application": RULE,
    "receive window": DIFFERENT,
    "send buffer": INCONCLUSIVE,
    "network": EQUIVALENT,
}
HEIGHT = 130
MOST_LABEL = 220
BARS = "The time of connections by the reason for waiting. If idle time is unknown: only the time with something to send."
LINES = (
    "The congestion window over time, for the connection of each run with the most acknowledged bytes. Thin: every run. Bold: "
    "the run with the median mean."
)


def reasons(result: Senders) -> tuple[Figure | str, ...]:
    """Return a panel for each cell, with a bar for each testbed and side."""
    if not any(sender.parts() for sender in result.limits):
        return ()
    several = len({sender.side for sender in result.limits}) > 1

    def panel(limits: Sequence[Limits]) -> Spec:
        return _reasons(limits, several=several)

    return panelled("why senders wait", BARS, result.limits, lambda sender: cell_title(sender.cell), panel)


def _reasons(limits: Sequence[Limits], *, several: bool) -> Spec:
    names = [_name(sender, several=several) for sender in limits]
    rows = [
        {
            "testbed": name,
            "reason": reason,
            "order": list(REASONS).index(reason),
            "percent": 100 * part,
            "said": f"{name}: {reason} {100 * part:.3g} %",
        }
        for name, sender in zip(names, limits, strict=True)
        for reason, part in sender.parts().items()
    ]
    return {
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
            "color": ranged(
                list(REASONS),
                list(REASONS.values()),
                {**LEGEND, "symbolType": "square", "symbolSize": 100, "symbolStrokeWidth": 0},
                "reason",
            ),
            "description": {"field": "said"},
        },
    }


def _name(sender: Limits, *, several: bool) -> str:
    return f"{sender.testbed}, {sender.side}" if several else sender.testbed


def over_time(result: Senders) -> tuple[Figure | str, ...]:
    """Return a panel for each cell and testbed: every run thin, the middle one bold. Panels of a cell have one scale."""
    most: dict[str, float] = {}
    for window in result.windows:
        cell = cell_title(window.cell)
        most[cell] = max(most.get(cell, 0.0), *window.cwnd)

    def title(window: Window) -> str:
        return f"{cell_title(window.cell) if window.cell else ''} {window.testbed}".strip()

    def panel(windows: Sequence[Window]) -> Spec:
        return _over_time(windows, result.testbeds, most[cell_title(windows[0].cell)])

    return panelled("congestion windows over time", LINES, result.windows, title, panel)


def _over_time(windows: Sequence[Window], testbeds: Sequence[str], most: float) -> Spec:
    testbed = windows[0].testbed
    colour = SERIES[list(testbeds).index(testbed) % len(SERIES)] if testbed in testbeds else INK
    x = axis("seconds", "seconds since the first sample", {"nice": False}, tickCount=5, grid=False, titleAnchor="end")
    y = axis("cwnd", "segments", {"domain": [0, most]}, tickCount=3, minExtent=40)

    def line(median: bool, **mark: float) -> Spec:
        rows = [
            {"run": window.run, "seconds": seconds, "cwnd": cwnd}
            for window in windows
            if window.median is median
            for seconds, cwnd in zip(window.seconds, window.cwnd, strict=True)
        ]
        place = {"x": x, "y": y, "detail": {"field": "run"}}
        return layer(rows, "line", place, interpolate="step-after", color=colour, aria=False, **mark)

    return {"height": HEIGHT, "layer": [line(False, strokeWidth=0.7, opacity=0.35), line(True, strokeWidth=1.7)]}
