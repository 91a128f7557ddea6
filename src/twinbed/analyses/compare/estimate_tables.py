"""What was measured, for results in which there is nothing to compare: one testbed, or none that shares a cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from twinbed.analyses.compare.grid import centre
from twinbed.model.comparison import Comparisons, Estimate
from twinbed.show.quantities import unit_scale
from twinbed.show.table import Table, readable
from twinbed.show.words import cell_title, heading, metric_title


@dataclass(frozen=True, slots=True)
class Measured:
    """One headline metric: (cell, testbed, ``1,234 ± 56 kB``, number of replicates) for each cell and testbed."""

    metric: str
    rows: tuple[tuple[str, str, str, int], ...]


def measured(result: Comparisons) -> Iterator[Measured]:
    """The headline metrics in the order of layers, with the interval of each mean."""
    headlines = [each for each in result.estimates if each.headline]
    for key, group in groupby(headlines, key=lambda each: (each.metric, each.host, each.direction)):
        rows = list(group)
        scale = unit_scale(rows[0].unit, [row.estimate.mean for row in rows])
        yield Measured(
            metric_title(*key),
            tuple(
                (cell_title(row.cell), row.testbed, _mean(row.estimate, scale.factor, scale.unit), row.estimate.n)
                for row in rows
            ),
        )


def measured_tables(result: Comparisons) -> Iterator[Table]:
    """A table a headline metric; none where there is something to compare."""
    for metric in measured(result) if not result.comparisons else ():
        rows = tuple((cell, testbed, mean, str(n)) for cell, testbed, mean, n in metric.rows)
        title = heading(metric.metric)
        yield readable(title, title, "Mean and interval of each cell.", ("Cell", "Testbed", "Mean", "n"), rows, texts=2)


def _mean(estimate: Estimate, factor: float, unit: str) -> str:
    if estimate.mean is None:
        return "no mean on its scale"
    return f"{centre(estimate, factor)} {unit}".rstrip()
