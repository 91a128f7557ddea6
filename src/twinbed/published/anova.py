"""Tables 4 and 5 of ONL from its Table 3: sums of squares, F, and intervals of neighbours' differences.

One factor with a levels and r replications, y_ij = mu + alpha_i + e_ij (Jain 1991, chapter 20): SS0 = a r mean^2, SSA = r sum
alpha_i^2, SSE = sum e_ij^2, F = MSA / MSE.  The difference of two levels' means has the half-width q sqrt(MSE 2 / r).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from twinbed.published import rounding
from twinbed.published.printed import LINKS, Cell, Library, Table
from twinbed.published.replayed import Replayed, Status, Take, Worked, derived, held, work
from twinbed.published.rounding import HUNDRED, Range, total

QUANTILE_LEVEL = 0.99
"""The confidence of the table's F."""


def levels(data: Table) -> dict[str, list[Cell]]:
    """Return receivers -> replications."""
    replications: dict[str, list[Cell]] = {}
    for cell in data.cells:
        replications.setdefault(cell.labels["receivers"], []).append(cell)
    return replications


def mean(cells: Sequence[Cell], take: Take) -> Range:
    return total([take(cell) for cell in cells]) / Range.exactly(len(cells))


def _parts(groups: Mapping[str, Sequence[Cell]], take: Take) -> dict[tuple[str, str], Range]:
    """Return (component, metric) -> value."""
    values = [cell for cells in groups.values() for cell in cells]
    count, a = len(values), len(groups)
    means = {level: mean(cells, take) for level, cells in groups.items()}
    grand = mean(values, take)
    y = total([take(cell).squared() for cell in values])
    ss0 = Range.exactly(count) * grand.squared()
    ssa = total([Range.exactly(len(cells)) * (means[level] - grand).squared() for level, cells in groups.items()])
    sse = total([(take(cell) - means[level]).squared() for level, cells in groups.items() for cell in cells])
    sst = ssa + sse
    msa, mse = ssa / Range.exactly(a - 1), sse / Range.exactly(count - a)
    degrees = {"y": count, "mean": 1, "y - mean": count - 1, "A": a - 1, "errors": count - a}
    squares = {"y": y, "mean": ss0, "y - mean": sst, "A": ssa, "errors": sse}
    return {
        **{(component, "sum_of_squares"): value for component, value in squares.items()},
        **{(component, "degrees_of_freedom"): Range.exactly(value) for component, value in degrees.items()},
        ("y - mean", "variation"): HUNDRED,
        ("A", "variation"): HUNDRED * ssa / sst,
        ("errors", "variation"): HUNDRED * sse / sst,
        ("A", "mean_square"): msa,
        ("errors", "mean_square"): mse,
        ("A", "f"): msa / mse,
        ("A", "table_f"): _quantile(a - 1, count - a),
    }


def _quantile(numerator: int, denominator: int) -> Range:
    from scipy.special import fdtri

    return Range.exactly(Fraction(float(fdtri(numerator, denominator, QUANTILE_LEVEL))))


FORMULAS: Mapping[str, str] = {
    "y": "sum of y_ij^2",
    "mean": "a r mean^2",
    "y - mean": "SSA + SSE",
    "A": "r sum of alpha_i^2",
    "errors": "sum of (y_ij - mean_i)^2",
}


def analysis_of_variance(library: Library, table: Table) -> Iterator[Replayed]:
    """Yield each cell of an analysis of variance, recomputed from the table of its data."""
    data = library.tables[table.settings["data"]]
    groups = levels(data)
    plain, wide = _parts(groups, lambda cell: Range.exactly(cell.number)), _parts(groups, lambda cell: cell.range)
    a, r = len(groups), len(next(iter(groups.values())))

    def digits(component: str, metric: str = "sum_of_squares") -> str:
        return rounding.significant(plain[component, metric].middle, 7)

    def formula(component: str, metric: str) -> str:
        match metric:
            case "sum_of_squares":
                return f"{FORMULAS[component]} of {data.id}"
            case "variation":
                return f"{digits(component)} / {digits('y - mean')}"
            case "mean_square":
                return f"{digits(component)} / {digits(component, 'degrees_of_freedom')}"
            case "f":
                return f"{digits('A', 'mean_square')} / {digits('errors', 'mean_square')}"
            case "table_f":
                return f"F({QUANTILE_LEVEL}; {a - 1}, {a * r - a})"
        return f"a = {a} levels, r = {r} replications"

    for cell in table.cells:
        key = (cell.labels["component"], cell.metric)
        yield held(cell, Worked(plain[key].middle, wide[key]), formula(*key), cell.metric.replace("_", " "))


def means(table: Table) -> Iterator[Replayed]:
    """Yield the mean loss at each number of receivers, and the effective throughput (1 - loss) x rate of a flow (ONL 6.1)."""
    offered = Range.exactly(LINKS[table.settings["offered"]] // 10**6)
    for level, cells in levels(table).items():
        loss = _mean_of(cells)
        printed = f"({' + '.join(cell.printed for cell in cells)}) / {len(cells)}"
        place = f"receivers={level}"
        yield derived(table.id, place, "mean loss", loss, "%", printed)
        through = Worked((1 - loss.value / 100) * offered.low, (Range.exactly(1) - loss.span / HUNDRED) * offered)
        formula = f"(1 - {rounding.significant(loss.value, 5)} / 100) x {offered.low}"
        yield derived(table.id, place, "effective throughput", through, "Mbit/s", formula)


def _mean_of(cells: Sequence[Cell]) -> Worked:
    return work(lambda take: mean(cells, take))


@dataclass(frozen=True, slots=True)
class Difference:
    """A row of a table of intervals of differences: as printed, and as the data give it."""

    low: Cell
    high: Cell
    marked: bool
    middle: Worked
    half: Worked
    """Half-width of the interval of a difference of two means."""
    quantile: Fraction
    scale: float
    """Quantile times standard deviation: half-widths of any kind are multiples of it."""
    replications: int
    levels: int
    expression: str

    @property
    def printed_half(self) -> Worked:
        low, high = self.low.range, self.high.range
        return Worked((self.high.number - self.low.number) / 2, (high - low) / Range.exactly(2))

    @property
    def ends(self) -> tuple[Worked, Worked]:
        value, span = self.middle, self.half
        return (
            Worked(value.value - span.value, value.span - span.span),
            Worked(value.value + span.value, value.span + span.span),
        )

    @property
    def significant(self) -> bool:
        """Return whether the interval leaves out 0."""
        low, high = self.ends
        return low.value > 0 or high.value < 0


def differences(library: Library, table: Table) -> Iterator[Difference]:
    groups = levels(library.tables[table.settings["data"]])
    mse = library.tables[table.settings["analysis"]].cell(component="errors", metric="mean_square")
    quantile = rounding.evaluate(table.settings["quantile"], rounded=False)
    for low in table.where(kind="lower bound"):
        group, other_group = groups[low.labels["receivers"]], groups[low.labels["against"]]
        share = Range.exactly(Fraction(2, len(group)))
        yield Difference(
            low=low,
            high=table.cell(kind="upper bound", **low.labels),
            marked=bool(table.where(kind="mark", **low.labels)),
            middle=_difference_of(group, other_group),
            half=Worked(
                (quantile * rounding.root(Range.exactly(mse.number) * share)).middle,
                quantile * rounding.root(mse.range * share),
            ),
            quantile=quantile.middle,
            scale=float(quantile.middle) * math.sqrt(mse.number),
            replications=len(group),
            levels=len(groups),
            expression=f"{table.settings['quantile']} sqrt({mse.printed} x 2/{len(group)})",
        )


def _difference_of(cells: Sequence[Cell], other_cells: Sequence[Cell]) -> Worked:
    return work(lambda take: mean(cells, take) - mean(other_cells, take))


def difference_intervals(library: Library, table: Table) -> Iterator[Replayed]:
    """Yield each row of a table of intervals of differences: its middle, its ends, and whether it is significant."""
    for row in differences(library, table):
        middle = rounding.shown(row.middle.value, 4)
        ends = (row.low.number + row.high.number) / 2
        between = (row.low.range + row.high.range) / Range.exactly(2)
        agrees = row.middle.span.overlaps(between)
        yield Replayed(
            table=table.id,
            cell=row.low.place,
            quantity="middle of the ends",
            printed=rounding.shown(ends, 3),
            recomputed=middle,
            unit=row.low.unit,
            low=float(row.middle.span.low),
            high=float(row.middle.span.high),
            formula=f"mean of {row.low.labels['receivers']} - mean of {row.low.labels['against']}",
            status=Status.EQUAL if agrees else Status.DIFFERS,
        )
        for cell, end, sign in zip((row.low, row.high), row.ends, "-+", strict=True):
            yield held(cell, end, f"{middle} {sign} {row.expression}", cell.kind)
        yield Replayed(
            table=table.id,
            cell=row.low.place,
            quantity="significant",
            printed="yes" if row.marked else "no",
            recomputed="yes" if row.significant else "no",
            unit="",
            low=None,
            high=None,
            formula=f"is 0 outside of ({rounding.shown(row.ends[0].value, 2)}, {rounding.shown(row.ends[1].value, 2)})?",
            status=Status.EQUAL if row.marked == row.significant else Status.DIFFERS,
        )
