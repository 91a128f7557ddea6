"""Draw a calibration: the ratio of both testbeds over the factor that varies most, both testbeds with the predictions between
them, and left-out cells compared with their predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from twinbed.analyses.calibrate.result import Calibrated, Calibrations, Place
from twinbed.model.run import Level
from twinbed.model.units import format_size
from twinbed.render.over_n import HEIGHT, LEGEND
from twinbed.render.plots import BAND, DASHES, DIFFERENT, EQUIVALENT, INK, MUTED, SERIES, WIDTH, Spec, axis, layer, panels
from twinbed.show.figure import Figure
from twinbed.show.quantities import UnitScale
from twinbed.show.words import at_cell, cell_title, heading

STEPS = 80
MOST_LINES = 5
"""Kinds in one picture."""
MOST_FIGURES = 8
"""Kinds, such as numbers of threads, that are drawn for each response."""
Kind = Mapping[str, Level]
"""The levels of all other factors."""


def figures(calibrations: Calibrations, calibrated: Calibrated) -> Iterator[Figure]:
    """Yield the ratio, the curves of each kind that the expensive testbed was measured at, and the left-out cells."""
    by, cells = calibrated.fitted.by, calibrated.fitted.expensive_cells
    kinds = [dict(kind) for kind in dict.fromkeys(tuple((n, v) for n, v in cell.items() if n != by) for cell in cells)]
    text = f"The ratio of {calibrations.expensive} to {calibrations.cheap}, with the interval of the process."
    yield Figure(text, text, lambda: _ratios(calibrations, calibrated, kinds[:MOST_LINES]), caption=text)
    for kind in kinds[:MOST_FIGURES]:
        text = (
            f"{heading(calibrated.title)}{at_cell(kind)}: both testbeds, and the prediction for {calibrations.expensive} "
            "with its interval. Shaded: the range of predictions."
        )
        yield Figure(f"{text} The table has the numbers.", spec=partial(_curves, calibrations, calibrated, kind), caption=text)
    if calibrated.inside:
        text = f"Every {by} left out once: the measurement minus the prediction from all others, with the interval."
        yield Figure(text, text, lambda: _left_out(calibrated), caption=text)


def named(scale: UnitScale) -> str:
    """Return the unit; empty if a metric's name includes it."""
    return "" if scale.unit in ("1", "/s") else scale.unit


def _between(calibrated: Calibrated, kind: Kind) -> tuple[Sequence[float], NDArray[np.float64]]:
    """Return numbers of the factor over the range measured on the expensive testbed, and their scaled places."""
    fitted = calibrated.fitted
    factor = fitted.inputs[fitted.group]
    own = [cell[fitted.by] for cell in fitted.expensive_cells]
    scaled = np.linspace(min(map(factor.scaled, own)), max(map(factor.scaled, own)), STEPS)
    places = np.repeat(fitted.places([{**kind, fitted.by: own[0]}]), STEPS, axis=0)
    places[:, fitted.group] = scaled
    return [factor.number(at) for at in scaled], places


def _curves(calibrations: Calibrations, calibrated: Calibrated, kind: Kind) -> Spec:
    """Return one panel: the cells of both testbeds, and the predicted band."""
    scale, by = calibrated.scale, calibrated.fitted.by
    at, places = _between(calibrated, kind)
    drawn = calibrated.places([{**kind, by: number} for number in at], calibrated.fitted.calibration.predict(places))
    cells = [place for place in calibrated.cells if all(place.levels[name] == level for name, level in kind.items())]
    x = _axis(calibrated, [_number(calibrated, place.levels) for place in cells])
    series = [calibrations.cheap, f"{calibrations.expensive}, measured", f"{calibrations.expensive}, predicted"]
    band: list[Spec] = [
        {"x": number, "low": place.low / scale.factor, "high": place.high / scale.factor, "value": place.value / scale.factor}
        | {"series": series[2]}
        for number, place in zip(at, drawn, strict=True)
        if place.low is not None and place.high is not None and place.value is not None
    ]
    points = [_point(calibrated, place, place.cheap, series[0]) for place in cells if place.cheap is not None]
    points += [_point(calibrated, place, place.expensive, series[1]) for place in cells if place.expensive is not None]
    positive = [row["value"] for row in (*points, *band)] + [row["low"] for row in band]
    title = calibrated.title + (f" [{named(scale)}]" if named(scale) else "")
    log = {"type": "log"} if max(positive) / min(positive) > 20 else {"zero": True}
    y = axis("value", title, log, format=",.6~g", titlePadding=8, tickCount=4)
    colour = _colour(series, (MUTED, DIFFERENT, INK))
    range_ = [{"x": at[0], "to": at[-1]}] if calibrated.fitted.inputs[calibrated.fitted.group].span else []
    place = {"x": x, "y": y, "color": colour}
    return _panel(
        layer(range_, "rect", {"x": x, "x2": {"field": "to"}}, color=BAND, opacity=0.5, aria=False),
        layer(band, "area", {"x": x, **_ends(y)}, color=INK, opacity=0.25, aria=False),
        layer(band, "line", place, strokeWidth=1.6, aria=False),
        layer(points, "point", {**place, "description": {"field": "said"}}, filled=True, size=36, opacity=0.85),
        height=HEIGHT + 20,
    )


def _ratios(calibrations: Calibrations, calibrated: Calibrated, shown: Sequence[Kind]) -> Spec:
    """Return the predicted ratio of the expensive testbed to the cheap one, a line with its band for each kind."""
    factor = calibrated.fitted.inputs[calibrated.fitted.group]
    names = [cell_title(kind) if kind else "all" for kind in shown]
    rows: list[Spec] = []
    for kind, name in zip(shown, names, strict=True):
        drawn, places = _between(calibrated, kind)
        of = calibrated.fitted.calibration.predict(places)
        for at, number in enumerate(drawn):
            if not of.refused[at]:
                ends = (of.difference, of.difference_low, of.difference_high)
                value, low, high = (math.exp(float(end[at])) for end in ends)
                rows.append({"x": number, "value": value, "low": low, "high": high, "series": name})
    x = _axis(calibrated, [factor.number(factor.scaled(cell[factor.name])) for cell in calibrated.fitted.cheap_cells])
    y = axis(
        "value", f"{calibrations.expensive} / {calibrations.cheap}", {"zero": False}, format="~g", titlePadding=8, tickCount=5
    )
    colour = _colour(names, [SERIES[at % len(SERIES)] for at in range(len(names))])
    colour["legend"] = LEGEND if len(names) > 1 else None
    dash = {**colour, "scale": {"domain": names, "range": [DASHES[at % len(DASHES)] for at in range(len(names))]}}
    return _panel(
        layer([{"value": 1}], "rule", {"y": y}, color=MUTED, aria=False),
        layer(rows, "area", {"x": x, **_ends(y), "color": colour}, opacity=0.2, aria=False),
        layer(rows, "line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, strokeWidth=1.6, aria=False),
        height=HEIGHT + 20,
    )


def _left_out(calibrated: Calibrated) -> Spec:
    """Return left-out measurements relative to their predictions, with intervals."""
    series = ["inside the interval", "outside"]
    rows: list[Spec] = [
        {
            "x": _number(calibrated, held.levels),
            "value": 100 * (held.measured / held.value - 1),
            "low": 100 * (held.low / held.value - 1),
            "high": 100 * (held.high / held.value - 1),
            "series": series[0] if held.is_held else series[1],
            "said": f"{cell_title(held.levels)}: measured {held.measured:.4g}, predicted {held.low:.4g} to {held.high:.4g}",
        }
        for held in calibrated.inside
    ]
    x, colour = _axis(calibrated, [row["x"] for row in rows]), _colour(series, (EQUIVALENT, DIFFERENT))
    y = axis("value", "measured minus predicted (%)", {}, format="~g", titlePadding=8, tickCount=5)
    place = {"x": x, "y": y, "color": colour, "description": {"field": "said"}}
    return _panel(
        layer([{"value": 0}], "rule", {"y": y}, color=MUTED, aria=False),
        layer(rows, "rule", {"x": x, **_ends(y), "color": colour}, strokeWidth=3, opacity=0.25, aria=False),
        layer(rows, "point", place, filled=True, size=40, opacity=0.9),
        height=HEIGHT,
    )


def _panel(*layers: Spec, height: int) -> Spec:
    return panels([{"width": WIDTH + 60, "height": height, "layer": [*layers]}])


def _ends(y: Spec) -> Spec:
    return {"y": {**y, "field": "low"}, "y2": {"field": "high"}}


def _colour(series: Sequence[str], colours: Sequence[str]) -> Spec:
    scale = {"domain": series, "range": [*colours]}
    return {"field": "series", "type": "nominal", "sort": series, "scale": scale, "legend": LEGEND}


def _axis(calibrated: Calibrated, numbers: Sequence[float]) -> Spec:
    factor = calibrated.fitted.inputs[calibrated.fitted.group]
    low, high = min(numbers), max(numbers)
    scale: Spec = {"nice": False, "zero": False, "domain": [low, high]}
    marks: Spec = {"grid": False, "labelOverlap": "greedy"}
    if factor.is_log:
        scale = {"type": "log", "base": 2, "nice": False, "domain": [low / 1.1, high * 1.1]}
        if factor.unit == "bytes":
            first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
            ticks = [2**power for power in range(first, last + 1, max(1, (last - first) // 6))]
            texts = ", ".join(f"'{tick}': '{format_size(tick)}'" for tick in ticks)
            marks |= {"values": ticks, "labelExpr": f"({{{texts}}})[format(datum.value, 'd')]"}
        else:
            marks |= {"format": "~s"}
    return axis("x", factor.name, scale, **marks)


def _number(calibrated: Calibrated, levels: Mapping[str, Level]) -> float:
    factor = calibrated.fitted.inputs[calibrated.fitted.group]
    return factor.number(factor.scaled(levels[factor.name]))


def _point(calibrated: Calibrated, place: Place, value: float, series: str) -> Spec:
    shown = value / calibrated.scale.factor
    text = f"{series}, {cell_title(place.levels)}: {shown:.4g}"
    return {"x": _number(calibrated, place.levels), "value": shown, "series": series, "said": text}
