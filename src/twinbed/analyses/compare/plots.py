"""Plots of comparisons as Vega-Lite specifications.

Two plots a metric, both with one panel a cell: the replicates of every testbed with mean and interval, and the ratio to the
reference with both its intervals over the band of the margin.  Each mark carries its numbers as its description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from twinbed.analyses.compare.forest import MOST, drawable, span
from twinbed.analyses.compare.grid import centre
from twinbed.analyses.compare.words import explanation
from twinbed.model.comparison import Comparison, Estimate, Estimated
from twinbed.model.result import Verdict
from twinbed.render.plots import (
    BAND,
    DIFFERENT,
    EQUIVALENT,
    INCONCLUSIVE,
    INK,
    MOST_CELLS,
    MUTED,
    ROW,
    Spec,
    label_width,
    panels,
    testbed_axis,
)
from twinbed.show.quantities import UnitScale, plus_minus, ratio, share, unit_scale
from twinbed.show.words import cell_title, metric_title

FOREST = 750
"""Width of the picture of all headlines with its labels, of a cell and a testbed, which take FOREST_LABELS at most."""
FOREST_LABELS = 420
PAIR = 440
"""Width of one of the two charts that stand side by side, with its labels, which take PAIR_LABELS at most."""
PAIR_LABELS = 220
BETWEEN = 66
"""Pixels between the panels of such charts, for the scale of one and the title of the next."""
VERDICTS = [str(verdict) for verdict in Verdict]


THIN = 1.5
"""Pixels of a corrected interval, which is too thin to point at; the other interval and the ratio on it have the numbers."""


def distribution(comparisons: Sequence[Comparison]) -> Spec:
    """Plot the replicates, means and intervals of one metric: the reference and every testbed, a panel a cell."""
    labels = _pair_labels(comparisons)
    return panels([_distribution_panel(rows, labels) for rows in _by_cell(comparisons)], BETWEEN)


def ratios(comparisons: Sequence[Comparison]) -> Spec:
    """Plot one metric's ratios to the reference over the band of the margin, on a logarithmic scale for all cells."""
    bounds = [bound for comparison in comparisons for bound in _bounds(comparison) if bound > 0]
    margin = comparisons[0].margin
    low, high = min([1 / (1 + 1.6 * margin), *bounds]), max([1 + 1.6 * margin, *bounds])
    labels = _pair_labels(comparisons)
    return panels([_ratio_panel(rows, (low / 1.03, high * 1.03), labels) for rows in _by_cell(comparisons)], BETWEEN)


def _pair_labels(comparisons: Sequence[Comparison]) -> int:
    """Return the width of labels of both charts of a row."""
    return label_width([f"{comparisons[0].reference} (ref)", *(comparison.testbed for comparison in comparisons)], PAIR_LABELS)


def forest(comparisons: Sequence[Comparison]) -> Spec:
    """Return all headline ratios on one logarithmic scale: a panel a metric, a line a cell and testbed."""
    shown = drawable(comparisons)
    low, high = span(shown)
    of_metric: dict[str, list[tuple[str, Comparison]]] = {}
    for comparison in shown[:MOST]:
        label = " ".join([*([cell_title(comparison.cell)] if comparison.cell else []), comparison.testbed])
        of_metric.setdefault(metric_title(comparison.metric, comparison.host, comparison.direction), []).append(
            (label, comparison)
        )
    domain = (low / 1.03, high * 1.03)
    labels = label_width((label for rows in of_metric.values() for label, _ in rows), FOREST_LABELS)
    last = list(of_metric)[-1]
    return panels(
        [
            _over_band(title, rows, domain, labels=labels, width=FOREST - labels, with_scale=title == last)
            for title, rows in of_metric.items()
        ]
    )


def values(measured: Sequence[Estimated]) -> Spec:
    """Return the plot of what was measured where nothing is compared: a panel a metric, a line a cell and testbed."""
    of_metric: dict[str, list[tuple[str, Estimate]]] = {}
    for estimated in measured:
        label = " ".join([*([cell_title(estimated.cell)] if estimated.cell else []), estimated.testbed])
        of_metric.setdefault(metric_title(estimated.metric, estimated.host, estimated.direction), []).append(
            (label, estimated.estimate)
        )
    units = {metric_title(estimated.metric, estimated.host, estimated.direction): estimated.unit for estimated in measured}
    labels = label_width((label for rows in of_metric.values() for label, _ in rows), FOREST_LABELS)
    return panels(
        [_values_panel(title, rows, units[title], labels, FOREST - labels) for title, rows in of_metric.items()], BETWEEN
    )


def cells_left_out(comparisons: Sequence[Comparison]) -> int:
    return max(0, len({cell_title(comparison.cell) for comparison in comparisons}) - MOST_CELLS)


def _by_cell(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    cells: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        cells.setdefault(cell_title(comparison.cell), []).append(comparison)
    return list(cells.values())[:MOST_CELLS]


def _panel(title: str, rows: int, layers: list[Spec], width: int) -> Spec:
    return {"title": title, "width": width, "height": ROW * rows, "layer": layers}


def _distribution_panel(rows: Sequence[Comparison], labels: int) -> Spec:
    first = rows[0]
    estimates = [
        (f"{first.reference} (ref)", first.reference_estimate),
        *((comparison.testbed, comparison.estimate) for comparison in rows),
    ]
    return _values_panel(cell_title(first.cell), estimates, first.unit, labels, PAIR - labels)


def _values_panel(title: str, estimates: Sequence[tuple[str, Estimate]], unit: str, labels: int, width: int) -> Spec:
    scale = unit_scale(unit, [value for _name, estimate in estimates for value in estimate.values])
    names = [name for name, _estimate in estimates]
    y = testbed_axis(names, labels)
    x_axis = {"title": scale.unit or " ", "tickCount": 4, "format": ",~r", "titleAnchor": "end", "titlePadding": 2}
    x = {
        "type": "quantitative",
        "scale": {"domain": _domain([estimate for _name, estimate in estimates], scale), "nice": False, "clamp": True},
        "axis": x_axis,
    }
    points = [
        {
            "testbed": name,
            "value": value / scale.factor,
            "said": f"{name}: {plus_minus(value / scale.factor, None)} {scale.unit}",
        }
        for name, estimate in estimates
        for value in estimate.values
    ]
    means = [_mean_row(name, estimate, scale) for name, estimate in estimates if estimate.mean is not None]
    layers: list[Spec] = [
        {
            "data": {"values": means},
            "mark": {"type": "rule", "strokeWidth": 8, "opacity": 0.22, "color": INK},
            "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "description": {"field": "said"}},
        },
        {
            "data": {"values": points},
            "mark": {"type": "circle", "size": 34, "opacity": 0.65, "color": INK},
            "encoding": {"y": y, "x": {**x, "field": "value"}, "description": {"field": "said"}},
        },
        {
            "data": {"values": means},
            "mark": {"type": "tick", "thickness": 2, "size": 16, "color": INK},
            "encoding": {"y": y, "x": {**x, "field": "mean"}, "description": {"field": "said"}},
        },
    ]
    return _panel(title, len(names), layers, width)


def _domain(estimates: Sequence[Estimate], scale: UnitScale) -> list[float]:
    """Return the range of all values, with as much of their intervals again on either side. An interval of two values may be a
    thousand times as wide, and would leave nothing of them. A constant gets 5 % of itself."""
    values = [value for estimate in estimates for value in estimate.values]
    least, most = min(values, default=0.0), max(values, default=1.0)
    bounds = [bound for estimate in estimates if (of := estimate.centre_interval) for bound in (of.low, of.high)]
    span = (most - least) or math.inf
    low = max(min([least, *bounds]), least - span) / scale.factor
    high = min(max([most, *bounds]), most + span) / scale.factor
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return [low - room, high + room]


def _mean_row(name: str, estimate: Estimate, scale: UnitScale) -> Spec:
    mean, interval = (estimate.centre or 0.0) / scale.factor, estimate.centre_interval
    low, high = (interval.low / scale.factor, interval.high / scale.factor) if interval else (mean, mean)
    label = f"{name}: mean {centre(estimate, scale.factor)} {scale.unit}, n = {estimate.n}"
    return {"testbed": name, "mean": mean, "low": low, "high": high, "said": label}


def _bounds(comparison: Comparison) -> list[float]:
    if comparison.wide_interval:
        return [comparison.wide_interval.low, comparison.wide_interval.high]
    return [comparison.ratio] if comparison.ratio else []


def _ratio_panel(rows: Sequence[Comparison], domain: tuple[float, float], labels: int) -> Spec:
    """Return the panel of one cell, with the reference."""
    of_testbeds = [(comparison.testbed, comparison) for comparison in rows]
    title = cell_title(rows[0].cell)
    return _over_band(title, of_testbeds, domain, beside_reference=True, labels=labels, width=PAIR - labels)


def _over_band(
    title: str,
    rows: Sequence[tuple[str, Comparison]],
    domain: tuple[float, float],
    *,
    beside_reference: bool = False,
    labels: int,
    width: int,
    with_scale: bool = True,
) -> Spec:
    """Plot labelled ratios with their intervals. Without ``with_scale`` another panel of the same domain has the numbers."""
    (low, high), first = domain, rows[0][1]
    reference = f"{first.reference} (ref)"
    names = [*([reference] if beside_reference else []), *(label for label, _ in rows)]
    y = testbed_axis(names, labels)
    ticks = _ticks(low, high, first.margin)
    axis: Spec = {"title": f"ratio to {first.reference}", "titleAnchor": "end", "titlePadding": 2}
    axis = {**(axis if with_scale else {"title": None, "labels": False, "ticks": False}), "values": ticks, "format": "~r"}
    x = {"type": "quantitative", "scale": {"type": "log", "domain": [low, high], "nice": False, "clamp": True}, "axis": axis}
    data = [_ratio_row(label, comparison, domain) for label, comparison in rows if comparison.ratio is not None]
    band = [{"low": 1 / (1 + first.margin), "high": 1 + first.margin, "said": f"margin: within {share(first.margin)}"}]
    colour = {
        "field": "verdict",
        "type": "nominal",
        "scale": {"domain": VERDICTS, "range": [EQUIVALENT, DIFFERENT, INCONCLUSIVE]},
        "legend": None,
    }
    shape = {**colour, "scale": {"domain": VERDICTS, "range": ["circle", "diamond", "cross"]}}
    itself = [{"testbed": reference, "one": 1, "said": f"{first.reference}: the reference"}]
    spans = [("wide_low", "wide_high", THIN), ("low", "high", 3 * THIN)]
    layers: list[Spec] = [
        {
            "data": {"values": band},
            "mark": {"type": "rect", "color": BAND},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "description": {"field": "said"}},
        },
        {
            "data": {"values": itself[:beside_reference]},
            "mark": {"type": "tick", "thickness": 2, "size": 16, "color": INK},
            "encoding": {"y": y, "x": {**x, "field": "one"}, "description": {"field": "said"}},
        },
        {
            "data": {"values": [{"one": 1}]},
            "mark": {"type": "rule", "color": MUTED, "strokeDash": [3, 3], "aria": False},
            "encoding": {"x": {**x, "field": "one"}},
        },
        *(
            {
                "data": {"values": [row for row in data if low_name in row]},
                "mark": {"type": "rule", "strokeWidth": thickness, "strokeCap": "round", "aria": thickness > THIN},
                "encoding": {
                    "y": y,
                    "x": {**x, "field": low_name},
                    "x2": {"field": high_name},
                    "color": colour,
                    "description": {"field": "said"},
                },
            }
            for low_name, high_name, thickness in spans
        ),
        {
            "data": {"values": data},
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {
                "y": y,
                "x": {**x, "field": "ratio"},
                "color": colour,
                "shape": shape,
                "description": {"field": "said"},
            },
        },
    ]
    return _panel(title, len(names), layers, width)


def _ratio_row(label: str, comparison: Comparison, domain: tuple[float, float]) -> Spec:
    low, high = domain

    def clip(value: float) -> float:
        return min(high, max(low, value))

    row: Spec = {"testbed": label, "ratio": clip(comparison.ratio or 0.0), "verdict": str(comparison.verdict)}
    interval = comparison.ratio_interval
    bounds = f" [{ratio(interval.low)}, {ratio(interval.high)}]" if interval else ""
    row["said"] = f"{comparison.testbed}: {ratio(comparison.ratio)}{bounds}, {comparison.verdict}: {explanation(comparison)}"
    if interval:
        row |= {"low": clip(interval.low), "high": clip(interval.high)}
    if comparison.wide_interval:
        row |= {"wide_low": clip(comparison.wide_interval.low), "wide_high": clip(comparison.wide_interval.high)}
    return row


def _ticks(low: float, high: float, margin: float) -> list[float]:
    """Return 1 and round numbers on both sides; the margin's edges if the plot shows little more than the margin."""
    if high / low < 3:
        edges = [round(1 / (1 + margin), 3), 1, round(1 + margin, 3)]
        further = [0.5, 0.7, 1.5, 2.0]
        return [
            tick
            for tick in sorted({*edges, *further})
            if low <= tick <= high and (tick in edges or abs(tick - 1) > 1.9 * margin)
        ]
    decades = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000]
    fine = [0.25, 0.5, 1, 2, 4]
    return [tick for tick in (fine if high / low < 16 else decades) if low <= tick <= high]
