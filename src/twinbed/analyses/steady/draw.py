"""Draw the rate over the time of a run: a panel for each cell and testbed."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.steady.result import Steady
from twinbed.render.plots import BAND, DIFFERENT, INK, MUTED, Spec, axis, layer, panelled
from twinbed.show.figure import Figure
from twinbed.show.words import cell_title

HEIGHT = 90
SPOKEN = 5
"""Every so many points has its number, where the pointer is."""
CAPTION = "The rate over the time of a run: the mean of all runs (line) and their range (area). Shaded: the warm-up."


def over_time(states: Sequence[Steady]) -> tuple[Figure | str, ...]:
    """Return the figure: the mean of runs, their least and most, and the warm-up."""
    return panelled("rate inside runs", CAPTION, states, _title, _panel)


def _title(state: Steady) -> str:
    return f"{cell_title(state.cell)} {state.testbed}{': never settles' if state.settles is False else ''}"


def _panel(states: Sequence[Steady]) -> Spec:
    (state,) = states
    parts = len(state.series)
    rows = [
        {
            "at": 100 * (at + 0.5) / parts,
            "rate": 100 * rate,
            "least": 100 * least,
            "most": 100 * most,
            "said": f"{state.testbed}, {100 * (at + 0.5) / parts:.0f} % of a run: {100 * rate:.3g} % of its mean",
        }
        for at, (rate, least, most) in enumerate(zip(state.series, state.least, state.most, strict=True))
    ]
    x = axis("at", "% of a run", {"domain": [0, 100], "nice": False}, tickCount=5, grid=False, titleAnchor="end")
    y = axis("rate", "% of its mean", {"zero": True}, tickCount=3, minExtent=40)
    ends = {"x": x, "y": {**y, "field": "least"}, "y2": {"field": "most"}}
    layers: list[Spec] = []
    if state.warm_up.shown and state.cut:
        layers.append(
            layer(
                [{"start": 0, "end": 100 * state.cut, "said": f"warm-up: {100 * state.cut:.0f} % of a run"}],
                "rect",
                {"x": {**x, "field": "start"}, "x2": {"field": "end"}, "description": {"field": "said"}},
                color=BAND,
            )
        )
    layers += [
        layer([{"one": 100}], "rule", {"y": {**y, "field": "one"}}, color=MUTED, strokeDash=[3, 3], aria=False),
        layer(rows, "area", ends, opacity=0.15, color=INK, aria=False),
        layer(rows, "line", {"x": x, "y": y}, strokeWidth=1.6, color=DIFFERENT if state.settles is False else INK, aria=False),
        layer(rows[SPOKEN // 2 :: SPOKEN], "circle", {"x": x, "y": y, "description": {"field": "said"}}, size=90, opacity=0),
    ]
    return {"height": HEIGHT, "layer": layers}
