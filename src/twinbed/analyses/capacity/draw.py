"""Capacity as a figure: every run over N, means with intervals, what they are compared with, and where the capacity lies."""

from __future__ import annotations

from twinbed.analyses.capacity.result import Capacities, LevelCapacity
from twinbed.render.over_n import HEIGHT, LEGEND, ROOM, of_n
from twinbed.render.plots import BAND, DIFFERENT, INK, MUTED, WIDTH, Spec, panels
from twinbed.show.quantities import UnitScale


def capacity_plot(capacities: Capacities, group: LevelCapacity, scale: UnitScale, axis: str) -> Spec:
    """Return every run over N, means with intervals, and what they are compared with; values in the unit of ``scale``, which
    ``axis`` names."""
    tested = [step.n for step in group.steps]
    x = of_n(tested, f"{capacities.one}s")
    left, right = x["scale"]["domain"]
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": _domain(capacities, group, scale), "nice": False},
        "axis": {"title": axis, "format": ",.6~g", "titlePadding": 8, "tickCount": 5},
    }
    low = max(group.low, left) if group.low else left
    high = right if group.high is None else min(group.high + 1, right)
    # Where neither end is known, there is no interval to show.
    known = group.low or group.high is not None
    bands = [{"n": low, "to": max(high, low * ROOM), "said": group.interval(capacities.one)}] if known else []
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
        {
            "data": {"values": bands},
            "mark": {"type": "rect", "color": BAND},
            "encoding": {"x": x, "x2": {"field": "to"}, "description": {"field": "said"}},
        },
        _held(capacities, group, scale, x, y),
        {
            "data": {"values": runs},
            "mark": {"type": "circle", "size": 30, "opacity": 0.45, "color": INK},
            "encoding": {"x": x, "y": y, "description": {"field": "said"}},
        },
        {
            "data": {"values": means},
            "mark": {"type": "line", "strokeWidth": 1.6, "color": INK, "aria": False},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": {"values": means},
            "mark": {"type": "rule", "strokeWidth": 2.4, "color": INK, "aria": False, "clip": True},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": means},
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1, "color": INK},
            "encoding": {"x": x, "y": y, "description": {"field": "said"}},
        },
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
        lines[f"mean at 1 {capacities.one}"] = group.single
    rows = [
        {"series": name, "n": at, "value": value / scale.factor, "said": f"{name}: {value / scale.factor:.4g}"}
        for name, value in lines.items()
        for at in x["scale"]["domain"]
    ]
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": list(lines),
        "scale": {"domain": list(lines), "range": [DIFFERENT, MUTED][: len(lines)]},
        "legend": LEGEND,
    }
    dash = {**colour, "scale": {"domain": list(lines), "range": [[6, 3], [2, 2]][: len(lines)]}}
    return {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 1.6},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash, "description": {"field": "said"}},
    }
