"""Comparisons along one ordered factor, such as the payload, and the pattern of their verdicts.

A range, "from P on" or "up to P", needs two or more equivalent cells without a gap at one end of the axis. It holds if each of
its cells holds (intersection-union: ``analyses.compare.claims``), and only for the levels that were measured. Verdicts in any
other order make no range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from twinbed.model.comparison import Comparison
from twinbed.model.result import Verdict
from twinbed.model.run import Level, level_text
from twinbed.observations.levels import size
from twinbed.report.advice.result import Contrast

Levels = tuple[tuple[str, Level], ...]


class Range(StrEnum):
    ALL = "all"
    FROM = "from"
    UP_TO = "up to"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one contrast at one combination of the other factors, in the order of the axis."""

    contrast: Contrast
    axis: str | None
    """None where no factor has an order: then there is one comparison."""
    rest: Levels
    """The levels of other factors that vary."""
    cells: tuple[Comparison, ...]

    @property
    def pattern(self) -> tuple[tuple[str, Verdict], ...]:
        """(level, verdict): equal for series that one sentence describes."""
        return tuple((level_of(cell, self.axis), cell.verdict) for cell in self.cells)

    @property
    def range(self) -> Range:
        """Where the series is shown to be equivalent."""
        return range_of([cell.verdict for cell in self.cells])


def level_of(comparison: Comparison, axis: str | None) -> str:
    return level_text(comparison.cell[axis]) if axis is not None else ""


def range_of(verdicts: Sequence[Verdict]) -> Range:
    """Return the range of verdicts in the order of the axis."""
    within = [verdict is Verdict.EQUIVALENT for verdict in verdicts]
    count = sum(within)
    if count == len(within):
        return Range.ALL
    if count < 2:
        return Range.NONE
    if all(within[-count:]):
        return Range.FROM
    return Range.UP_TO if all(within[:count]) else Range.NONE


def series(
    comparisons: Sequence[tuple[Contrast, Comparison]], axis: str | None, varying: Mapping[str, Sequence[Level]]
) -> list[Series]:
    """Group the comparisons of one results folder by contrast, metric and the levels of all factors except the axis."""
    groups: dict[tuple[Contrast, str, str | None, Levels], list[Comparison]] = {}
    for contrast, comparison in comparisons:
        own = axis if axis in comparison.cell else None
        rest = tuple((name, level) for name, level in comparison.cell.items() if name in varying and name != own)
        groups.setdefault((contrast, comparison.place, own, rest), []).append(comparison)
    return [
        Series(contrast, own, rest, tuple(sorted(cells, key=lambda cell: _place(cell, own))))
        for (contrast, _, own, rest), cells in groups.items()
    ]


def _place(comparison: Comparison, axis: str | None) -> float:
    known = size(comparison.cell[axis]) if axis is not None else None
    return known[1] if known else 0.0
