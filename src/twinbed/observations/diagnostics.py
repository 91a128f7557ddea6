"""Figures of a fitted model as Vega-Lite specifications: residuals, normal Q-Q, effects, interactions, differences.

They follow the page's colours (see ``plots``), and each mark carries its numbers as its description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.render.plots import DASHES, DIFFERENT, INK, LABELS, MUTED, ROW, SERIES, WIDTH, Spec, panels
from twinbed.statistics.assumptions import Residual

HEIGHT = 200


TEXT = 15
"""Height of a line of text in a plot, in its points."""


TICKS = 5


DIGITS = 12
"""About so many numbers on an axis, and at most so many digits: more digits are noise of the arithmetic."""


MOST_POINTS = 1500
"""The most residuals in a plot; more are thinned evenly over all ranks."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A named value with its own interval and a wider one that holds with others; bounds may be None."""

    name: str
    value: float
    low: float | None
    high: float | None
    wide_low: float | None = None
    wide_high: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of one series at one place of the horizontal axis."""

    series: str
    at: str
    value: float
    low: float | None = None
    high: float | None = None


def residuals(rows: Sequence[Residual], unit: str) -> Spec:
    """Plot residuals by predicted values: a band of one width shows equal variances."""
    data = [
        {"x": row.predicted, "y": row.residual, "said": f"predicted {row.predicted:.4g}, residual {row.residual:.3g}"}
        for row in thinned(rows)
    ]
    return panels([_scatter(data, f"predicted{unit}", f"residual{unit}", [_horizontal()])])


def normal_quantiles(rows: Sequence[Residual], unit: str) -> Spec:
    """Plot sorted residuals by where a normal's would lie; the line is through the quartiles."""
    kept = sorted(thinned(rows), key=lambda row: row.normal_quantile)
    data = [
        {
            "x": row.normal_quantile,
            "y": row.residual,
            "said": f"quantile {row.normal_quantile:.3f}, residual {row.residual:.3g}",
        }
        for row in kept
    ]
    return panels([_scatter(data, "quantile of a normal", f"residual{unit}", [_quartile_line(kept)])])


def scale_location(rows: Sequence[tuple[float, float]], unit: str) -> Spec:
    """Plot the root of the standardised residual's size by the predicted value, given as pairs: it shows how spread grows."""
    data = [
        {
            "x": predicted,
            "y": math.sqrt(abs(standardised)),
            "said": f"predicted {predicted:.4g}, residual {standardised:.3g} sd",
        }
        for predicted, standardised in rows
    ]
    return panels([_scatter(data, f"predicted{unit}", "root of |standardised residual|", [])])


def thinned(rows: Sequence[Residual], most: int = MOST_POINTS) -> Sequence[Residual]:
    """Return at most so many rows: evenly many of every rank, and always the extremes."""
    if len(rows) <= most:
        return rows
    ranked = sorted(rows, key=lambda row: row.normal_quantile)
    step = (len(ranked) - 1) / (most - 1)
    return [ranked[round(at * step)] for at in range(most)]


def _scatter(data: list[Spec], x: str, y: str, layers: list[Spec]) -> Spec:
    axis = {"tickCount": 5, "format": ",.4~g", "titlePadding": 4, "grid": False, "domain": True, "domainColor": "#030303"}
    encoding = {
        "x": {"field": "x", "type": "quantitative", "scale": {"zero": False}, "axis": {**axis, "title": x}},
        "y": {"field": "y", "type": "quantitative", "scale": {"zero": False}, "axis": {**axis, "title": y, "titlePadding": 10}},
    }
    points = {
        "data": {"values": data},
        "mark": {"type": "point", "size": 26, "color": INK, "opacity": 0.7, "strokeWidth": 1.2},
        "encoding": {**encoding, "description": {"field": "said"}},
    }
    return {"width": WIDTH + 60, "height": HEIGHT, "layer": [*layers, points]}


def _horizontal() -> Spec:
    return {
        "data": {"values": [{"zero": 0}]},
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False},
        "encoding": {"y": {"field": "zero", "type": "quantitative"}},
    }


def _quartile_line(rows: Sequence[Residual]) -> Spec:
    """Draw the line through the quartiles, as R's qqline."""
    low, high = rows[len(rows) // 4], rows[(3 * len(rows)) // 4 if len(rows) > 3 else -1]
    across = high.normal_quantile - low.normal_quantile
    slope = (high.residual - low.residual) / across if across else 0.0
    ends = [
        {"x": row.normal_quantile, "y": low.residual + slope * (row.normal_quantile - low.normal_quantile)}
        for row in (rows[0], rows[-1])
    ]
    return {
        "data": {"values": ends},
        "mark": {"type": "line", "color": MUTED, "strokeDash": [3, 3], "aria": False},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }


def intervals(bars: Sequence[Bar], axis: str, none: float) -> Spec:
    """Plot values with their intervals, a row each: the thick line is a value's own interval, the thin one the simultaneous.
    Place ``none`` is that of no effect: 0, or 1 for ratios, which get a logarithmic axis. Intervals that exclude it are
    coloured."""
    widest = max((len(bar.name) for bar in bars), default=0)
    labels = max(LABELS, min(260, 7 * widest + 16))
    y = {
        "field": "name",
        "type": "nominal",
        "sort": [bar.name for bar in bars],
        "axis": {
            "title": None,
            "ticks": False,
            "labelColor": INK,
            "labelLimit": labels,
            "labelFontSize": 12,
            "grid": False,
            "minExtent": labels,
        },
    }
    domain = _domain(bars, none)
    x = {
        "type": "quantitative",
        "scale": {"type": "log" if none else "linear", "nice": False, "zero": False, "domain": domain},
        "axis": {"title": axis, "tickCount": 5, "titleAnchor": "end", "titlePadding": 2, **_labels("g", domain, none > 0)},
    }
    data = [_bar(bar, none) for bar in bars]
    lines = [
        {
            "data": {"values": [row for row in data if low in row]},
            "mark": {"type": "rule", "strokeWidth": thickness, "strokeCap": "round", "color": INK},
            "encoding": {"y": y, "x": {**x, "field": low}, "x2": {"field": high}, "description": {"field": "said"}},
        }
        for low, high, thickness in (("wide_low", "wide_high", 1.2), ("low", "high", 4.0))
    ]
    rule = {
        "data": {"values": [{"none": none}]},
        "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False},
        "encoding": {"x": {**x, "field": "none"}},
    }
    points = {
        "data": {"values": data},
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
        "encoding": {
            "y": y,
            "x": {**x, "field": "value"},
            "color": {
                "field": "away",
                "type": "nominal",
                "scale": {"domain": [True, False], "range": [DIFFERENT, INK]},
                "legend": None,
            },
            "description": {"field": "said"},
        },
    }
    return panels([{"width": WIDTH + 60, "height": ROW * len(bars), "layer": [rule, *lines, points]}])


def _bar(bar: Bar, none: float) -> Spec:
    row: Spec = {"name": bar.name, "value": bar.value, "said": f"{bar.name}: {bar.value:.4g}", "away": False}
    if bar.low is not None and bar.high is not None:
        row |= {"low": bar.low, "high": bar.high, "said": f"{row['said']} [{bar.low:.4g}, {bar.high:.4g}]"}
        row["away"] = not bar.low <= none <= bar.high
    if bar.wide_low is not None and bar.wide_high is not None:
        row |= {"wide_low": bar.wide_low, "wide_high": bar.wide_high, "away": not bar.wide_low <= none <= bar.wide_high}
    return row


def _domain(bars: Sequence[Bar], none: float) -> list[float]:
    values = [none]
    for bar in bars:
        values += [number for number in (bar.value, bar.low, bar.high, bar.wide_low, bar.wide_high) if number is not None]
    return _roomy(min(values), max(values), none > 0)


def _roomy(low: float, high: float, logarithmic: bool) -> list[float]:
    """Return a domain with some room at both ends."""
    if logarithmic:
        room = (high / low) ** 0.05 if high > low else 1.1
        return [low / room, high * room]
    room = 0.05 * (high - low) or 1.0
    return [low - room, high + room]


def _labels(kind: str, domain: Sequence[float], logarithmic: bool) -> Spec:
    """Return the format of an axis' numbers. Vega leaves out labels of a logarithmic axis by their first digit: between 880 and
    905 all of them. Within a decade each tick therefore has its own label."""
    low, high = domain
    parts = TICKS * max(abs(low), abs(high)) / (high - low) if high > low else 1.0
    form = f",.{min(max(4, math.ceil(math.log10(parts)) + 1), DIGITS)}~{kind}"
    within = logarithmic and high < 10 * low
    return {"labelExpr": f"format(datum.value, '{form}')"} if within else {"format": form}


def interaction(points: Sequence[Point], x: str, y: str, logarithmic: bool) -> Spec:
    """Plot means of a cell by the levels of one factor, a line for each level of the other: parallel lines mean no
    interaction."""
    places = list(dict.fromkeys(point.at for point in points))
    names = list(dict.fromkeys(point.series for point in points))
    data = [
        {
            "at": point.at,
            "series": point.series,
            "value": point.value,
            "said": f"{point.series}, {point.at}: {point.value:.4g}",
            **({"low": point.low, "high": point.high} if point.low is not None and point.high is not None else {}),
        }
        for point in points
    ]
    ends = [(point.value, point.low, point.high) for point in points]
    shown = [value for end in ends for value in end if value is not None]
    domain = _roomy(min(shown), max(shown), logarithmic)
    value_scale: Spec = {"type": "log" if logarithmic else "linear", "domain": domain, "nice": False, "zero": False}
    y_axis: Spec = {
        "type": "quantitative",
        "scale": value_scale,
        "axis": {"title": y, "tickCount": 4, "titlePadding": 10, **_labels("r", domain, logarithmic)},
    }
    colours = [SERIES[at % len(SERIES)] for at in range(len(names))]
    dashes = [DASHES[at % len(DASHES)] for at in range(len(names))]
    encoding = {
        "x": {
            "field": "at",
            "type": "ordinal",
            "sort": places,
            "axis": {"title": x, "labelAngle": 0, "grid": False},
            "scale": {"padding": 0.3},
        },
        "y": {**y_axis, "field": "value"},
        "color": {"field": "series", "type": "nominal", "scale": {"domain": names, "range": colours}, "legend": None},
    }
    last = [row for row in data if row["at"] == places[-1]]
    layers: list[Spec] = [
        {
            "data": {"values": data},
            "mark": {"type": "line", "strokeWidth": 1.8, "point": False},
            "encoding": {
                **encoding,
                "strokeDash": {
                    "field": "series",
                    "type": "nominal",
                    "scale": {"domain": names, "range": dashes},
                    "legend": None,
                },
            },
        },
        {
            "data": {"values": [row for row in data if "low" in row]},
            "mark": {"type": "rule", "strokeWidth": 1.2, "aria": False},
            "encoding": {**encoding, "y": {**y_axis, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": data},
            "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
            "encoding": {**encoding, "description": {"field": "said"}},
        },
        {
            "data": {"values": _apart(last, domain, logarithmic)},
            "mark": {"type": "text", "align": "left", "dx": 9, "fontSize": 12},
            "encoding": {**encoding, "y": {**y_axis, "field": "label"}, "text": {"field": "series"}},
        },
    ]
    return panels([{"width": WIDTH + 20, "height": HEIGHT, "layer": layers}])


def _apart(last: Sequence[Spec], domain: Sequence[float], logarithmic: bool) -> list[Spec]:
    """Place the names of lines, upwards from where the lines end, so that they do not overlap."""
    scale, back = (math.log, math.exp) if logarithmic else (float, float)
    gap = TEXT * (scale(domain[1]) - scale(domain[0])) / HEIGHT
    apart: list[Spec] = []
    below = -math.inf
    for row in sorted(last, key=lambda row: float(row["value"])):
        below = max(scale(row["value"]), below + gap)
        apart.append({**row, "label": back(below)})
    return apart
