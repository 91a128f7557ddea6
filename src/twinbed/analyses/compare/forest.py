"""All headline ratios in one picture of characters: a line each, on one logarithmic scale, with the band of the margin."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from twinbed.analyses.compare.words import effect_text, explanation
from twinbed.model.comparison import Comparison
from twinbed.model.result import Verdict
from twinbed.show.quantities import ratio, share
from twinbed.show.words import SYMBOLS, cell_title, metric_title
from twinbed.terminal import one_line

STYLES = {Verdict.EQUIVALENT: "cyan", Verdict.DIFFERENT: "bold red", Verdict.INCONCLUSIVE: "yellow"}
FARTHEST = 100.0
"""Ratios beyond it, or below its inverse, are drawn at the edge, with an arrow."""
MOST = 40
"""Lines; what decides is first."""
TITLE = "ratio"
LEAST_SCALE = 25
"""Columns of the picture, whatever the labels; longer ones stand on lines of their own."""
NEAR = 5.0
"""A picture that spans less has its ticks at the margin's edges and halves."""


def drawable(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return those with a ratio above 0, which a logarithmic scale can show."""
    return [comparison for comparison in comparisons if comparison.ratio]


def span(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """Return what the picture shows, so that all ratios and bounds are in it or beyond FARTHEST."""
    bounds = [bound for comparison in comparisons for bound in _bounds(comparison) if bound > 0]
    margin = max((comparison.margin for comparison in comparisons), default=0.1)
    low, high = min([1 / (1 + 3 * margin), *bounds]), max([1 + 3 * margin, *bounds])
    return max(low, 1 / FARTHEST), min(high, FARTHEST)


def _bounds(comparison: Comparison) -> list[float]:
    interval = comparison.ratio_interval
    return [comparison.ratio or 0.0, *([interval.low, interval.high] if interval else [])]


def forest(comparisons: Sequence[Comparison], width: int) -> Iterator[Text]:
    """Yield the lines, none wider than ``width`` where labels and numbers leave room for the picture. A comparison without a
    ratio has its numbers alone, an inconclusive one its reason, once a metric."""
    rows = comparisons[:MOST]
    if not rows:
        return
    labels = [
        one_line(f"  {cell_title(comparison.cell)} {comparison.testbed}" if comparison.cell else f"  {comparison.testbed}")
        for comparison in rows
    ]
    numbers = max(len(effect_text(comparison)) for comparison in rows)
    room = max(len(TITLE), min(max(map(len, labels)), width - LEAST_SCALE - numbers - len("  =  ")))
    scale = _Scale(rows, width - room - numbers - len("  =  "))
    first = rows[0]
    yield Text(f"{TITLE:<{room}}   {scale.ticks(first.margin)}".rstrip(), "dim")
    before = ""
    reasons: set[str] = set()
    for comparison, label in zip(rows, labels, strict=True):
        metric = one_line(metric_title(comparison.metric, comparison.host, comparison.direction))
        if metric != before:
            yield Text(metric, "underline")
            before, reasons = metric, set()
        if len(label) > room:  # whole, on a line of its own
            yield Text(label)
        line = Text(f"{label if len(label) <= room else '':<{room}} ")
        line.append(SYMBOLS[comparison.verdict], STYLES[comparison.verdict])
        line.append(" ")
        line.append_text(scale.line(comparison) if comparison.ratio else Text(" " * scale.size))
        line.append(f" {effect_text(comparison)}")
        yield line
        reason = explanation(comparison)
        if comparison.verdict is Verdict.INCONCLUSIVE and reason not in reasons:
            reasons.add(reason)
            yield from (Text(f"      {part}", "dim") for part in textwrap.wrap(reason, max(LEAST_SCALE, width - 6)))
    if len(comparisons) > MOST:
        yield Text(f"and {len(comparisons) - MOST} more in the tables", "dim")
    yield Text(
        f"░ within {share(first.margin)} of {one_line(first.reference)}  ├─●─┤ ratio and interval  ◄ ► beyond the picture",
        "dim",
    )
    yield Text("  ".join(f"{SYMBOLS[verdict]} {verdict}" for verdict in Verdict), "dim")


class _Scale:
    """Logarithmic, as far to one side of 1 as to the other, so that 1 is in the middle."""

    def __init__(self, comparisons: Sequence[Comparison], room: int) -> None:
        low, high = span(drawable(comparisons))
        self._high = max(math.log(high), -math.log(low))
        self._low = -self._high
        self.size = max(LEAST_SCALE, room) - (max(LEAST_SCALE, room) + 1) % 2

    def at(self, value: float) -> int:
        """Return the column of a value, the first or the last where it is beyond."""
        if value <= 0:
            return 0
        place = (math.log(value) - self._low) / (self._high - self._low) * (self.size - 1)
        return min(self.size - 1, max(0, round(place)))

    def _beyond(self, value: float) -> bool:
        return value <= 0 or not self._low - 1e-9 <= math.log(value) <= self._high + 1e-9

    def line(self, comparison: Comparison) -> Text:
        columns = [" "] * self.size
        for column in range(self.at(1 / (1 + comparison.margin)), self.at(1 + comparison.margin) + 1):
            columns[column] = "░"
        columns[self.at(1.0)] = "│"
        band = Text("".join(columns), "dim")
        interval, middle = comparison.ratio_interval, self.at(comparison.ratio or 0.0)
        if interval is None:
            drawn, start = "●", middle
        else:
            start, end = self.at(interval.low), self.at(interval.high)
            marks = ["─"] * (end - start + 1)
            marks[0] = "◄" if self._beyond(interval.low) else "├"
            marks[-1] = "►" if self._beyond(interval.high) else "┤"
            marks[middle - start] = "●"
            drawn = "".join(marks)
        return Text.assemble(band[:start], (drawn, STYLES[comparison.verdict]), band[start + len(drawn) :])

    def ticks(self, margin: float) -> str:
        """Return the labels of the axis: round numbers that do not overlap."""
        line = [" "] * self.size
        powers = [10.0**power * lead for lead in (1, 5, 2) for power in range(-2, 3)]
        near = self._high - self._low < math.log(NEAR)
        for value in [1.0, *([2, 0.5, 1 / (1 + margin), 1 + margin, 1.5, 0.75, 3] if near else powers)]:
            text = ratio(value).rstrip("0").rstrip(".") if "." in ratio(value) else ratio(value)
            start = self.at(value) - len(text) // 2
            free = start >= 0 and start + len(text) <= self.size and not self._beyond(value)
            if free and all(line[at] == " " for at in range(max(0, start - 2), min(self.size, start + len(text) + 2))):
                line[start : start + len(text)] = text
        return "".join(line)
