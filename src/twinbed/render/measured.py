"""What was measured, for results in which there is nothing to compare: one testbed, or none that shares a cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from twinbed.model.result import Result
from twinbed.render.quantities import plus_minus, scaling
from twinbed.render.tabular import Tabular
from twinbed.render.words import cell_title, heading, metric_title


@dataclass(frozen=True, slots=True)
class Measured:
    """One headline metric: (cell, testbed, ``1,234 ± 56 kB``, number of replicates) for each cell and testbed."""

    metric: str
    rows: tuple[tuple[str, str, str, int], ...]


def measured(result: Result) -> Iterator[Measured]:
    """The headline metrics in the order of layers; ± is the half width of the mean's interval."""
    found = [row for row in result.tables.get("estimates", []) if row["headline"]]
    for key, group in groupby(found, key=lambda row: (row["metric"], row["host"], row["direction"])):
        rows = list(group)
        scale = scaling(rows[0]["unit"], [row["mean"] for row in rows])
        yield Measured(
            metric_title(*key),
            tuple((cell_title(row["cell"]), row["testbed"], _mean(row, scale.factor, scale.unit), row["n"]) for row in rows),
        )


def measured_tables(result: Result) -> Iterator[Tabular]:
    """A table a headline metric; none where there is something to compare."""
    for metric in measured(result) if not result.comparisons else ():
        rows = tuple((cell, testbed, mean, str(n)) for cell, testbed, mean, n in metric.rows)
        title = heading(metric.metric)
        yield Tabular(title, "Mean and interval of each cell.", ("Cell", "Testbed", "Mean", "n"), rows, texts=2)


def _mean(row: Mapping[str, Any], factor: float, unit: str) -> str:
    if row["mean"] is None:
        return "no mean on its scale"
    half = (row["high"] - row["low"]) / 2 / factor if row["high"] is not None else None
    return f"{plus_minus(row['mean'] / factor, half)} {unit}".rstrip()
