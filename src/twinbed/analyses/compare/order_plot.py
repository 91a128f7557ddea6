"""Residuals of one metric against the order of runs, a panel a testbed, with the line of the drift that was found."""

from __future__ import annotations

from twinbed.model.comparison import Drift, Ordering, Residual
from twinbed.render.plots import DIFFERENT, INK, MUTED, WIDTH, Spec, panels
from twinbed.show.quantities import UnitScale, unit_scale

HEIGHT = 96
MOST_RUNS = 1500
"""Points drawn, evenly taken; a plot of more says no more."""


def residuals(ordering: Ordering) -> Spec:
    """Plot residuals in the order of runs: in per cent if they are of logarithms, else in the metric's unit."""
    step = -(-len(ordering.residuals) // MOST_RUNS)
    shown = ordering.residuals[::step]
    largest = max(abs(residual.value) for residual in shown)
    scale = UnitScale(0.01, "%") if ordering.relative else unit_scale(ordering.unit, [largest])
    first, last = ordering.residuals[0].order, ordering.residuals[-1].order
    x = {
        "type": "quantitative",
        "scale": {"domain": [first - 0.5, last + 0.5], "nice": False},
        "axis": {"title": "run", "tickCount": 6, "tickMinStep": 1, "format": ",d", "titleAnchor": "end", "grid": False},
    }
    return panels([_panel(drift, [r for r in shown if r.testbed == drift.testbed], scale, x) for drift in ordering.drifts])


def _panel(drift: Drift, shown: list[Residual], scale: UnitScale, x: Spec) -> Spec:
    # Each testbed by its own measure: what drifts on a steady one is not to be seen beside a restless one.
    top = 1.08 * max((abs(residual.value) for residual in shown), default=1.0) / scale.factor or 1.0
    y = {
        "type": "quantitative",
        "scale": {"domain": [-top, top], "nice": False},
        "axis": {"title": f"difference from its mean ({scale.unit or '1'})", "tickCount": 4, "format": "~r", "minExtent": 40},
    }
    points = [
        {
            "order": residual.order,
            "value": residual.value / scale.factor,
            "said": f"{drift.testbed}, run {residual.order}, block {residual.block + 1}: "
            f"{residual.value / scale.factor:+.3g} {scale.unit}".rstrip(),
        }
        for residual in shown
    ]
    # The drift is of logarithms where residuals are; the difference to a share is not to be seen.
    half = drift.change / 2 / scale.factor
    ends = [shown[0].order, shown[-1].order] if shown else [0, 0]
    line = [{"order": ends[0], "value": -half, "end": ends[1], "to": half, "said": f"drift of {drift.testbed}"}]
    layers: list[Spec] = [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False},
            "encoding": {"y": {**y, "field": "zero"}},
        },
        {
            "data": {"values": points},
            "mark": {"type": "circle", "size": 26, "opacity": 0.65, "color": INK},
            "encoding": {"x": {**x, "field": "order"}, "y": {**y, "field": "value"}, "description": {"field": "said"}},
        },
    ]
    if drift.trend and not drift.inside_cells:
        layers.append(
            {
                "data": {"values": line},
                "mark": {"type": "rule", "color": DIFFERENT, "strokeWidth": 2},
                "encoding": {
                    "x": {**x, "field": "order"},
                    "y": {**y, "field": "value"},
                    "x2": {"field": "end"},
                    "y2": {"field": "to"},
                    "description": {"field": "said"},
                },
            }
        )
    return {"title": drift.testbed, "width": WIDTH, "height": HEIGHT, "layer": layers}
