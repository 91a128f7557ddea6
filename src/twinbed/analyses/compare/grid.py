"""One metric as the field prints it: a row a cell, a column a testbed, means with the half widths of their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from twinbed.model.comparison import Comparison, Estimate
from twinbed.show.quantities import UnitScale, number, unit_scale, with_interval
from twinbed.show.words import cell_title


@dataclass(frozen=True, slots=True)
class Row:
    """One cell. ``comparisons`` and ``means`` are in the order of the grid's testbeds; None where one has no such cell."""

    cell: str
    reference: str
    comparisons: tuple[Comparison | None, ...]
    means: tuple[str, ...]
    scale: UnitScale


@dataclass(frozen=True, slots=True)
class Grid:
    reference: str
    testbeds: tuple[str, ...]
    rows: tuple[Row, ...]


def grid(comparisons: Sequence[Comparison]) -> Grid:
    """Return the comparisons of one metric, host and direction."""
    testbeds = tuple(dict.fromkeys(comparison.testbed for comparison in comparisons))
    rows = []
    for cell, group in groupby(comparisons, key=lambda comparison: cell_title(comparison.cell)):
        of = {comparison.testbed: comparison for comparison in group}
        first = next(iter(of.values()))
        scale = unit_scale(
            first.unit, [first.reference_estimate.mean, *(comparison.estimate.mean for comparison in of.values())]
        )
        in_order = tuple(of.get(name) for name in testbeds)
        means = tuple("" if comparison is None else mean(comparison.estimate, scale) for comparison in in_order)
        rows.append(Row(cell, mean(first.reference_estimate, scale), in_order, means, scale))
    return Grid(comparisons[0].reference, testbeds, tuple(rows))


def mean(estimate: Estimate, scale: UnitScale) -> str:
    """Return ``1,234 ± 56 kB``; the median of an ordinal metric, the commonest of names."""
    if estimate.n == 0:
        return "no values"
    if estimate.mean is None:
        median = next((quantile.value for quantile in estimate.quantiles if quantile.share == 0.5), None)
        commonest, count = Counter(estimate.values).most_common(1)[0]
        return f"{commonest:g} in {count} of {estimate.n}" if median is None else f"median {median:g}"
    return f"{centre(estimate, scale.factor)} {scale.unit}".rstrip()


def centre(estimate: Estimate, factor: float) -> str:
    """Return the mean that ratios are of, with its interval."""
    interval = estimate.centre_interval
    bounds = (interval.low / factor, interval.high / factor) if interval else (None, None)
    return with_interval(None if estimate.centre is None else estimate.centre / factor, *bounds)


def spread(estimate: Estimate, scale: UnitScale) -> str:
    """Return ``n = 5, sd 0.18``: replicates, and their standard deviation to two digits in the unit of the mean."""
    if not estimate.stdev:
        return f"n = {estimate.n}"
    deviation = estimate.stdev / scale.factor
    return f"n = {estimate.n}, sd {number(deviation, deviation)}"
