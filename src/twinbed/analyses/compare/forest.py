"""All headline ratios in one picture of characters: a line each, on one logarithmic scale, with the band of the margin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from twinbed.analyses.compare.result import Comparison
from twinbed.analyses.compare.words import SYMBOLS
from twinbed.model.result import Verdict
from twinbed.render.quantities import ratio, share
from twinbed.render.words import cell_title, metric_title

STYLES = {Verdict.EQUIVALENT: "cyan", Verdict.DIFFERENT: "bold red", Verdict.INCONCLUSIVE: "yellow"}
FARTHEST = 100.0
"""Ratios beyond it, or below its inverse, are drawn at the edge, with an arrow."""
MOST = 40
"""Lines; what decides is first."""
LABEL = 46
"""Width of the labels; longer ones take more as long as LEAST_SCALE is left for the picture."""
LEAST_SCALE = 40
NEAR = 5.0
"""A picture that spans less has its ticks at the margin's edges and halves."""


def drawable(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Those with a ratio above 0, which a logarithmic scale can show."""
    return [each for each in comparisons if each.ratio]


def span(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """What the picture shows, so that all ratios and bounds are in it or beyond FARTHEST."""
    bounds = [bound for each in comparisons for bound in _bounds(each) if bound > 0]
    margin = max((each.margin for each in comparisons), default=0.1)
    low, high = min([1 / (1 + 3 * margin), *bounds]), max([1 + 3 * margin, *bounds])
    return max(low, 1 / FARTHEST), min(high, FARTHEST)


def _bounds(each: Comparison) -> list[float]:
    interval = each.ratio_interval
    return [each.ratio or 0.0, *([interval.low, interval.high] if interval else [])]


def forest(comparisons: Sequence[Comparison], width: int) -> Iterator[Text]:
    """The lines; nothing where there is no ratio."""
    rows = drawable(comparisons)
    if not rows:
        return
    low, high = span(rows)
    labels = [f"  {cell_title(each.cell)} {each.testbed}" if each.cell else f"  {each.testbed}" for each in rows[:MOST]]
    room = max(LABEL, min(max(map(len, labels)), width - LEAST_SCALE - 3))
    size = width - room - 3
    scale = _Scale(low, high, size)
    first = rows[0]
    yield Text(f"{'ratio to ' + first.reference:<{room}}   {scale.ticks(first.margin)}", "dim")
    before = ""
    for each, label in zip(rows, labels, strict=False):
        metric = metric_title(each.metric, each.host, each.direction)
        if metric != before:
            yield Text(metric, "underline")
            before = metric
        shown = label if len(label) <= room else f"{label[: room - 1]}…"
        line = Text(f"{shown:<{room}} ")
        line.append(SYMBOLS[each.verdict], STYLES[each.verdict])
        line.append(" ")
        line.append_text(scale.line(each))
        yield line
    if len(rows) > MOST:
        yield Text(f"and {len(rows) - MOST} more in the table", "dim")
    yield Text(f"░ within {share(first.margin)}  ├─●─┤ ratio and interval  ◄ ► beyond the picture", "dim")


class _Scale:
    def __init__(self, low: float, high: float, size: int) -> None:
        self._low, self._high, self._size = math.log(low), math.log(high), size

    def at(self, value: float) -> int:
        """The column of a value, the first or the last where it is beyond."""
        if value <= 0:
            return 0
        place = (math.log(value) - self._low) / (self._high - self._low) * (self._size - 1)
        return min(self._size - 1, max(0, round(place)))

    def _beyond(self, value: float) -> bool:
        return value <= 0 or not self._low - 1e-9 <= math.log(value) <= self._high + 1e-9

    def line(self, each: Comparison) -> Text:
        columns = [" "] * self._size
        for column in range(self.at(1 / (1 + each.margin)), self.at(1 + each.margin) + 1):
            columns[column] = "░"
        columns[self.at(1.0)] = "│"
        band = Text("".join(columns), "dim")
        interval, middle = each.ratio_interval, self.at(each.ratio or 0.0)
        if interval is None:
            drawn, start = "●", middle
        else:
            start, end = self.at(interval.low), self.at(interval.high)
            marks = ["─"] * (end - start + 1)
            marks[0] = "◄" if self._beyond(interval.low) else "├"
            marks[-1] = "►" if self._beyond(interval.high) else "┤"
            marks[middle - start] = "●"
            drawn = "".join(marks)
        return Text.assemble(band[:start], (drawn, STYLES[each.verdict]), band[start + len(drawn) :])

    def ticks(self, margin: float) -> str:
        """Round numbers, none on top of another."""
        line = [" "] * self._size
        powers = [10.0**power * lead for lead in (1, 5, 2) for power in range(-2, 3)]
        near = math.exp(self._high - self._low) < NEAR
        for value in [1.0, *([2, 0.5, 1 / (1 + margin), 1 + margin, 1.5, 0.75, 3] if near else powers)]:
            text = ratio(value).rstrip("0").rstrip(".") if "." in ratio(value) else ratio(value)
            start = self.at(value) - len(text) // 2
            free = start >= 0 and start + len(text) <= self._size and not self._beyond(value)
            if free and all(line[at] == " " for at in range(max(0, start - 2), min(self._size, start + len(text) + 2))):
                line[start : start + len(text)] = text
        return "".join(line)
