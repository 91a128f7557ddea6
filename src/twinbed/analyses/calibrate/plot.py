"""A calibration as pictures: both testbeds over the factor that varies most, with what is predicted between, and what was left
out against what the others said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.analyses.calibrate.result import Calibrated, Calibrations, Held, Place
from twinbed.model.run import Level, level_text
from twinbed.model.units import format_size
from twinbed.render.over_n import HEIGHT, LEGEND
from twinbed.render.plots import BAND, DASHES, DIFFERENT, EQUIVALENT, INK, MUTED, SERIES, WIDTH, Spec, panels
from twinbed.show.quantities import UnitScale

STEPS = 80
Kind = Mapping[str, Level]
"""The levels of all other factors."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Over the factor at one kind."""

    kind: Kind
    at: Sequence[float]
    """In base units of the factor."""
    places: Sequence[Place]


def kinds(each: Calibrated) -> Sequence[Kind]:
    """Those that the dear testbed was measured at."""
    by = each.fitted.by
    cells = each.fitted.dear_cells
    return [dict(kind) for kind in dict.fromkeys(tuple((n, v) for n, v in cell.items() if n != by) for cell in cells)]


def curve(each: Calibrated, kind: Kind) -> Curve:
    """What is predicted between what was measured of the dear testbed."""
    numbers, places = _between(each, kind)
    said = each.fitted.calibration.predict(places)
    return Curve(kind, numbers, each.places([{**kind, each.fitted.by: number} for number in numbers], said))


def _between(each: Calibrated, kind: Kind) -> tuple[Sequence[float], NDArray[np.float64]]:
    """Numbers of the factor from the least to the largest that were measured of the dear testbed, and their scaled places."""
    fitted = each.fitted
    one = fitted.inputs[fitted.group]
    own = [cell[fitted.by] for cell in fitted.dear_cells]
    scaled = np.linspace(min(map(one.scaled, own)), max(map(one.scaled, own)), STEPS)
    places = np.repeat(fitted.places([{**kind, fitted.by: own[0]}]), STEPS, axis=0)
    places[:, fitted.group] = scaled
    return [one.number(at) for at in scaled], places


def curves_plot(found: Calibrations, each: Calibrated, kind: Kind, scale: UnitScale, axis: str) -> Spec:
    """One panel: the cheap testbed's cells, the dear one's, and the band between those."""
    one = each.fitted.inputs[each.fitted.group]
    drawn = curve(each, kind)
    cells = [place for place in each.cells if all(place.levels[name] == level for name, level in kind.items())]
    x = _axis(each, [_number(each, place.levels) for place in cells])
    series = [found.cheap, f"{found.dear}, measured", f"{found.dear}, predicted"]
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": series,
        "scale": {"domain": series, "range": [MUTED, DIFFERENT, INK]},
        "legend": LEGEND,
    }
    band: list[Spec] = [
        {
            "x": at,
            "low": place.low / scale.factor,
            "high": place.high / scale.factor,
            "value": place.value / scale.factor,
            "series": series[2],
        }
        for at, place in zip(drawn.at, drawn.places, strict=True)
        if place.low is not None and place.high is not None and place.value is not None
    ]
    points = [_point(each, place, place.cheap, series[0], scale) for place in cells if place.cheap is not None]
    points += [_point(each, place, place.dear, series[1], scale) for place in cells if place.dear is not None]
    positive = [row["value"] for row in (*points, *band)] + [row["low"] for row in band]
    is_log = max(positive) / min(positive) > 20
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"type": "log"} if is_log else {"zero": True},
        "axis": {"title": axis, "format": ",.6~g", "titlePadding": 8, "tickCount": 4},
    }
    domain = [{"x": drawn.at[0], "to": drawn.at[-1]}] if one.span else []
    layers: list[Spec] = [
        {
            "data": {"values": domain},
            "mark": {"type": "rect", "color": BAND, "opacity": 0.5, "aria": False},
            "encoding": {"x": {**x, "field": "x"}, "x2": {"field": "to"}},
        },
        {
            "data": {"values": band},
            "mark": {"type": "area", "color": INK, "opacity": 0.25, "aria": False},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": band},
            "mark": {"type": "line", "strokeWidth": 1.6, "aria": False},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 36, "opacity": 0.85},
            "encoding": {"x": x, "y": y, "color": colour, "description": {"field": "said"}},
        },
    ]
    return panels([{"width": WIDTH + 60, "height": HEIGHT + 20, "layer": layers}])


def ratios_plot(found: Calibrations, each: Calibrated, shown: Sequence[Kind]) -> Spec:
    """The predicted ratio of the dear testbed to the cheap one, a line with its band for each kind."""
    one = each.fitted.inputs[each.fitted.group]
    names = [_where(kind) or "all" for kind in shown]
    rows: list[Spec] = []
    for kind, name in zip(shown, names, strict=True):
        drawn, places = _between(each, kind)
        said = each.fitted.calibration.predict(places)
        for at, number in enumerate(drawn):
            if not said.refused[at]:
                ends = (said.difference, said.difference_low, said.difference_high)
                value, low, high = (math.exp(float(end[at])) for end in ends)
                rows.append({"x": number, "value": value, "low": low, "high": high, "series": name})
    x = _axis(each, [one.number(one.scaled(cell[one.name])) for cell in each.fitted.cheap_cells])
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": names,
        "scale": {"domain": names, "range": [SERIES[at % len(SERIES)] for at in range(len(names))]},
        "legend": LEGEND if len(names) > 1 else None,
    }
    dash = {**colour, "scale": {"domain": names, "range": [DASHES[at % len(DASHES)] for at in range(len(names))]}}
    y = {
        "field": "value",
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"title": f"{found.dear} / {found.cheap}", "format": "~g", "titlePadding": 8, "tickCount": 5},
    }
    layers: list[Spec] = [
        {"data": {"values": [{"value": 1}]}, "mark": {"type": "rule", "color": MUTED, "aria": False}, "encoding": {"y": y}},
        {
            "data": {"values": rows},
            "mark": {"type": "area", "opacity": 0.2, "aria": False},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.6, "aria": False},
            "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
        },
    ]
    return panels([{"width": WIDTH + 60, "height": HEIGHT + 20, "layer": layers}])


def left_out_plot(each: Calibrated, held: Sequence[Held]) -> Spec:
    """What was measured, as a share of what the others predict, with the interval that they give."""
    x = _axis(each, [_number(each, one.levels) for one in held])
    series = ["in its interval", "not in it"]
    rows = [
        {
            "x": _number(each, one.levels),
            "value": 100 * (one.measured / one.value - 1),
            "low": 100 * (one.low / one.value - 1),
            "high": 100 * (one.high / one.value - 1),
            "series": series[0] if one.is_held else series[1],
            "said": f"{_where(one.levels)}: measured {one.measured:.4g}, predicted {one.low:.4g} to {one.high:.4g}",
        }
        for one in held
    ]
    y = {
        "field": "value",
        "type": "quantitative",
        "axis": {"title": "measured less predicted (%)", "format": "~g", "titlePadding": 8, "tickCount": 5},
    }
    colour = {
        "field": "series",
        "type": "nominal",
        "sort": series,
        "scale": {"domain": series, "range": [EQUIVALENT, DIFFERENT]},
        "legend": LEGEND,
    }
    layers: list[Spec] = [
        {"data": {"values": [{"value": 0}]}, "mark": {"type": "rule", "color": MUTED, "aria": False}, "encoding": {"y": y}},
        {
            "data": {"values": rows},
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.25, "aria": False},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 0.9},
            "encoding": {"x": x, "y": y, "color": colour, "description": {"field": "said"}},
        },
    ]
    return panels([{"width": WIDTH + 60, "height": HEIGHT, "layer": layers}])


def _axis(each: Calibrated, numbers: Sequence[float]) -> Spec:
    one = each.fitted.inputs[each.fitted.group]
    low, high = min(numbers), max(numbers)
    scale: Spec = {"nice": False, "zero": False, "domain": [low, high]}
    axis: Spec = {"title": one.name, "grid": False, "labelOverlap": "greedy"}
    if one.is_log:
        scale = {"type": "log", "base": 2, "nice": False, "domain": [low / 1.1, high * 1.1]}
        if one.unit == "bytes":
            first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
            ticks = [2**power for power in range(first, last + 1, max(1, (last - first) // 6))]
            texts = ", ".join(f"'{tick}': '{format_size(tick)}'" for tick in ticks)
            axis |= {"values": ticks, "labelExpr": f"({{{texts}}})[format(datum.value, 'd')]"}
        else:
            axis |= {"format": "~s"}
    return {"field": "x", "type": "quantitative", "scale": scale, "axis": axis}


def _number(each: Calibrated, levels: Mapping[str, Level]) -> float:
    one = each.fitted.inputs[each.fitted.group]
    return one.number(one.scaled(levels[one.name]))


def _point(each: Calibrated, place: Place, value: float | None, series: str, scale: UnitScale) -> Spec:
    shown = (value or 0.0) / scale.factor
    return {
        "x": _number(each, place.levels),
        "value": shown,
        "series": series,
        "said": f"{series}, {_where(place.levels)}: {shown:.4g}",
    }


def _where(levels: Mapping[str, Level]) -> str:
    return ", ".join(f"{name} {level_text(level)}" for name, level in levels.items())
