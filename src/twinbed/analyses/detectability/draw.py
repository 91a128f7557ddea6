"""Draw accuracy over the length of the observation, and detectability by speed."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.analyses.detectability.result import TARGET, WHO, Cost, Detectability, Detection, area_text
from twinbed.render.over_n import LEGEND, ranged
from twinbed.render.plots import DASHES, MUTED, SERIES, Spec, axis, layer, panelled
from twinbed.show.figure import Figure
from twinbed.show.words import cell_title, metric_name

HEIGHT = 180
ALL, LEFT = "all", "residue"
MOST = 12
"""Panels; the tables have the rest."""
LINES = (
    "The share of observations that are identified correctly, by length. Solid: all features. Dashed: the residue, which no "
    "setting removes. The thin grey lines are 95 % and guessing."
)
COSTS = (
    "How detectable each testbed is (AUC with its interval) and its speed. Fast is to the right, hidden is below. A line joins "
    "testbeds that no other beats in both."
)


def over_length(result: Detectability) -> tuple[Figure | str, ...]:
    """Return a panel for each cell, for the passive observer: solid lines use all features, dashed ones the residue."""
    testbeds = list(dict.fromkeys(detection.testbed for detection in result.detections))
    several = [detection for detection in result.detections if len(detection.as_is.lengths) > 1]

    def panel(group: Sequence[Detection]) -> Spec:
        return _over_length(group, testbeds)

    return panelled("accuracy over length", LINES, several, lambda detection: cell_title(detection.cell), panel, MOST)


def _over_length(group: Sequence[Detection], testbeds: Sequence[str]) -> Spec:
    rows = [
        {
            "testbed": detection.testbed,
            "features": features,
            "packets": length.packets,
            "accuracy": length.accuracy,
            "said": f"{detection.testbed}, {features}: {100 * length.accuracy:.3g} % right with {length.packets} packets",
        }
        for detection in group
        for features, accuracy in ((ALL, detection.as_is), (LEFT, detection.residue))
        if accuracy is not None
        for length in accuracy.lengths
    ]
    lowest = min(0.4, *(float(str(row["accuracy"])) for row in rows))
    powers = {"type": "log", "base": 2, "nice": False}
    x = axis("packets", "packets observed, each way", powers, format=",d", grid=False, tickCount=6)
    y = axis("accuracy", "identified correctly", {"domain": [lowest, 1]}, format="~%", tickCount=5, minExtent=40)
    legend = {**LEGEND, "symbolType": "stroke"} if len({row["features"] for row in rows}) > 1 else None
    dash = ranged((ALL, LEFT), DASHES, legend, "features")
    colour = ranged(testbeds, (*SERIES[1:], SERIES[0]), LEGEND, "testbed")
    encoding = {"x": x, "y": y, "color": colour, "description": {"field": "said"}}
    layers = [
        layer([{"accuracy": TARGET}, {"accuracy": 0.5}], "rule", {"y": y}, color=MUTED, strokeDash=[4, 3], aria=False),
        layer(rows, "line", {**encoding, "strokeDash": dash}, strokeWidth=1.7, aria=False),
        layer(rows, "circle", encoding, size=30, opacity=1),
    ]
    return {"height": HEIGHT, "layer": layers}


def pareto(result: Detectability) -> tuple[Figure | str, ...]:
    """Return a panel for each cell and observer; a line joins the testbeds that nothing beats."""
    speed = f"{metric_name(result.metric)}, relative to {result.reference}"

    def title(cost: Cost) -> str:
        return f"{WHO[cost.observer]}{f', {cell_title(cost.cell)}' if cost.cell else ''}"

    def panel(group: Sequence[Cost]) -> Spec:
        return _pareto(group, speed)

    return panelled("what hiding costs", COSTS, result.costs, title, panel, MOST)


def _pareto(group: Sequence[Cost], speed: str) -> Spec:
    rows = [
        {
            "testbed": cost.testbed,
            "ratio": cost.ratio,
            "area": cost.area,
            "low": cost.interval.low,
            "high": cost.interval.high,
            "best": cost.best,
            "said": f"{cost.testbed}: AUC {area_text(cost.area)}, {cost.ratio:.3g} of the reference's speed",
        }
        for cost in group
    ]
    best = sorted((row for row in rows if row["best"]), key=lambda row: float(str(row["ratio"])))
    ratios = [cost.ratio for cost in group]
    room = 0.15 * ((max(ratios) - min(ratios)) or 1.0)
    shown = {"domain": [min(ratios) - room, max(ratios) + 2 * room], "nice": False}
    x = axis("ratio", speed, shown, format="~g", tickCount=5, grid=False)
    shown = {"domain": [min(0.4, *(cost.interval.low for cost in group)), 1.04], "nice": False}
    y = axis("area", "AUC: 0.5 is hidden", shown, values=[0, 0.25, 0.5, 0.75, 1], format=".2~f", minExtent=40)
    at: Spec = {"x": x, "y": y, "color": {"condition": {"test": "datum.best", "value": SERIES[1]}, "value": MUTED}}
    ends = {**at, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    name = {**at, "text": {"field": "testbed"}}
    layers = [
        layer([{"area": 0.5}], "rule", {"y": y}, color=MUTED, strokeDash=[4, 3], aria=False),
        layer(best, "line", {"x": x, "y": y}, strokeWidth=1.5, color=SERIES[1], interpolate="step-before", aria=False),
        layer(rows, "rule", ends, strokeWidth=1.2, aria=False, opacity=0.5),
        layer(rows, "circle", {**at, "description": {"field": "said"}}, size=60, opacity=1),
        layer(rows, "text", name, align="left", dx=7, dy=-7, fontSize=11, aria=False),
    ]
    return {"height": HEIGHT, "layer": layers}
