"""Draw capacity: every run over N, means with intervals, the objective, and where the capacity lies."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.capacity.result import Capacities, LevelCapacity
from twinbed.render.over_n import HEIGHT, LEGEND, ROOM, of_n, ranged
from twinbed.render.plots import BAND, DIFFERENT, INK, MUTED, WIDTH, Spec, axis, layer, panels
from twinbed.show.quantities import UnitScale

SAID = {"description": {"field": "said"}}


def capacity_plot(capacities: Capacities, group: LevelCapacity, scale: UnitScale, title: str) -> Spec:
    """Return every run over N, means with intervals, and the objective. Values are in the unit of ``scale``, which ``title``
    names."""
    tested = [step.n for step in group.steps]
    x = of_n(tested, f"{capacities.noun}s")
    left, right = x["scale"]["domain"]
    across = {"domain": _domain(capacities, group, scale), "nice": False}
    y = axis("value", title, across, format=",.6~g", titlePadding=8, tickCount=5)
    at, span = {"x": x, "y": y}, {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    low = max(group.low, left) if group.low else left
    high = right if group.high is None else min(group.high + 1, right)
    # Where neither end is known, there is no interval to show.
    known = group.low or group.high is not None
    bands = [{"n": low, "to": max(high, low * ROOM), "said": group.interval(capacities.noun)}] if known else []
    means = [
        {
            "n": step.n,
            "value": step.mean / scale.factor,
            "low": step.interval.low / scale.factor,
            "high": step.interval.high / scale.factor,
            "said": f"N = {step.n}: mean {step.mean / scale.factor:.4g}, {step.interval.low / scale.factor:.4g} to"
            f" {step.interval.high / scale.factor:.4g}, {len(step.values)} runs",
        }
        for step in group.steps
    ]
    runs = [
        {"n": step.n, "value": value / scale.factor, "said": f"N = {step.n}: {value / scale.factor:.4g} (a run)"}
        for step in group.steps
        for value in step.values
    ]
    layers: list[Spec] = [
        layer(bands, "rect", {"x": x, "x2": {"field": "to"}, **SAID}, color=BAND),
        _held(capacities, group, scale, x, y),
        layer(runs, "circle", {**at, **SAID}, size=30, opacity=0.45, color=INK),
        layer(means, "line", at, strokeWidth=1.6, color=INK, aria=False),
        layer(means, "rule", span, strokeWidth=2.4, color=INK, aria=False, clip=True),
        layer(means, "point", {**at, **SAID}, filled=True, size=50, opacity=1, color=INK),
    ]
    return panels([{"width": WIDTH + 60, "height": HEIGHT + 30, "layer": layers}])


def _domain(capacities: Capacities, group: LevelCapacity, scale: UnitScale) -> list[float]:
    """Return a domain from 0 to a little above all that is drawn."""
    values = [value for step in group.steps for value in (*step.values, step.interval.high)]
    highest = max(group.bound, *values) / scale.factor
    lowest = min(0.0, *(min(step.values) for step in group.steps)) / scale.factor
    return [lowest, highest + 0.05 * ((highest - lowest) or 1.0)]


def _held(capacities: Capacities, group: LevelCapacity, scale: UnitScale, x: Spec, y: Spec) -> Spec:
    """Return the lines that means are compared with, named above the figure."""
    lines = {"objective": group.bound}
    if group.single is not None:
        lines[f"mean at 1 {capacities.noun}"] = group.single
    rows = [
        {"series": name, "n": at, "value": value / scale.factor, "said": f"{name}: {value / scale.factor:.4g}"}
        for name, value in lines.items()
        for at in x["scale"]["domain"]
    ]
    ranges: Sequence[Sequence[object]] = ((DIFFERENT, MUTED), ([6, 3], [2, 2]))
    colour, dash = (ranged(list(lines), of[: len(lines)], LEGEND) for of in ranges)
    return layer(rows, "line", {"x": x, "y": y, "color": colour, "strokeDash": dash, **SAID}, strokeWidth=1.6)
