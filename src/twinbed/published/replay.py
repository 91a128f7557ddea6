"""Every printed number with printed inputs, recomputed; and numbers that follow from them and are printed nowhere.

The columns and settings of a table determine its formula, not its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from twinbed.published import anova, regression, rounding
from twinbed.published.printed import Cell, Equation, Library, Table
from twinbed.published.replayed import Replayed, Status, Worked, derived, held, status, work
from twinbed.published.rounding import HUNDRED, Range, total


def replay(library: Library, table: Table | None = None) -> list[Replayed]:
    """Return all rows, or those of one table (equations of the text come only with all)."""
    if table is not None:
        return list(_of_table(library, table))
    rows = [row for printed in library.tables.values() for row in _of_table(library, printed)]
    return rows + [of_equation(equation) for equation in library.equations]


def _of_table(library: Library, table: Table) -> Iterator[Replayed]:
    settings = table.settings
    if "reprint_of" in settings:
        yield from _reprint(library.tables[settings["reprint_of"]], table)
    if "quantile" in settings:
        yield from anova.difference_intervals(library, table)
    elif "data" in settings:
        yield from anova.analysis_of_variance(library, table)
    if "receivers" in table.labels and "replication" in table.labels:
        yield from anova.means(table)
    if "instrumented" in settings:
        yield from _instrumentation(library, table)
    if table.where(metric="transactions"):
        yield from _rates(table)
    if table.where(metric="requests_per_second"):
        yield from _goodput(library, table)
    if table.where(metric="fairness"):
        yield from _fairness(table)
    if "calls" in settings:
        yield from _per_call(table)
    if table.where(kind="sum"):
        yield from _sums(table)
    if table.where(kind="probability"):
        yield from _rows_of_chain(table)
    if table.where(kind="coefficient"):
        yield from regression.significance(table)
        yield from regression.effects(table)


def _reprint(original: Table, table: Table) -> Iterator[Replayed]:
    for cell in table.cells:
        first = original.cell(kind=cell.kind, **cell.labels)
        yield held(cell, Worked(first.number, first.range), f"{original.id}: {first.printed}")


def _rates(table: Table) -> Iterator[Replayed]:
    seconds = Range.exactly(int(table.settings["duration_s"]))
    for cell in table.where(kind="mean"):
        rate = Worked(cell.number / seconds.low, cell.range / seconds)
        yield derived(table.id, cell.place, "transactions a second", rate, "1/s", f"{cell.printed} / {seconds.low} s")


def goodput(library: Library, cell: Cell, otherwise: bool = False) -> tuple[Worked, str]:
    """Return payload bits a second of a request rate, by the usual or other meaning of the payload's name, and the formula."""
    size = library.sizes[cell.labels["payload"]]
    bits = 8 * (size.otherwise if otherwise and size.otherwise else size.bytes)
    return Worked(cell.number * bits, cell.range * Range.exactly(bits)), f"{cell.printed} x 8 x {bits // 8}"


def _goodput(library: Library, table: Table) -> Iterator[Replayed]:
    million = Range.exactly(10**6)
    for cell in table.where(kind="mean", metric="requests_per_second"):
        rate, formula = goodput(library, cell)
        shown = Worked(rate.value / 10**6, rate.span / million)
        yield derived(table.id, cell.place, "goodput", shown, "Mbit/s", formula)


def _instrumentation(library: Library, table: Table) -> Iterator[Replayed]:
    """Yield the change by instrumentation: each cell compared with the instrumented one."""
    others = [library.tables[name] for name in table.settings["instrumented"].split("+")]
    for cell in table.where(kind="mean"):
        for other in (instrumented for printed in others for instrumented in printed.where(kind="mean", **cell.labels)):
            formula = f"{other.table} {other.printed} / {cell.printed} - 1"
            yield derived(table.id, cell.place, "change by instrumentation", _change(cell, other), "%", formula)


def _change(before: Cell, after: Cell) -> Worked:
    """Return the change in per cent."""
    return work(lambda take: HUNDRED * (take(after) / take(before) - Range.exactly(1)))


def fairness_of(mean: Range, deviation: Range) -> Range:
    """Return Jain's index of flows with this mean and standard deviation (Jain, Chiu & Hawe 1984).

    (sum x)^2 / (n sum x^2) = 1 / (1 + (s/m)^2), with the deviation of n values divided by n.
    """
    unity = Range.exactly(1)
    return unity / (unity + (deviation / mean).squared())


def _fairness(table: Table) -> Iterator[Replayed]:
    """Yield fairness from the mean and standard deviation of the flows' throughput, dividing by n or by n - 1."""
    for cell in table.where(metric="fairness", kind="mean"):
        mean = table.cell(metric="throughput", kind="mean", **cell.labels)
        deviation = table.cell(metric="throughput", kind="standard deviation", **cell.labels)
        count = int(cell.labels["flows"]) * (table.n or 1)
        by_n = Worked(
            fairness_of(Range.exactly(mean.number), Range.exactly(deviation.number)).middle,
            fairness_of(mean.range, deviation.range),
        )
        # With n - 1 as the divisor the deviation over n is a little smaller, and fairness a little larger.
        shrunk = deviation.range * rounding.root(Range.exactly(Fraction(count - 1, count)))
        widest = Worked(by_n.value, Range(by_n.span.low, fairness_of(mean.range, shrunk).high))
        yield held(cell, widest, f"1 / (1 + ({deviation.printed} / {mean.printed})^2)")


def _per_call(table: Table) -> Iterator[Replayed]:
    """Yield how many times more probable each call is, on the geometric mean."""
    calls = Range.exactly(int(table.settings["calls"]))
    ten = Fraction("2.302585092994045684017991454684364207601101488628773")
    for cell in table.cells:
        exponent = Worked(cell.number / calls.low, cell.range / calls)
        factor = Worked(
            rounding.exponential(Range.exactly(exponent.value * ten)).middle,
            rounding.exponential(exponent.span * Range.exactly(ten)),
        )
        formula = f"10^({cell.printed.removeprefix('E')} / {calls.low})"
        yield derived(table.id, cell.place, "relative probability a call", factor, "", formula)


def _sums(table: Table) -> Iterator[Replayed]:
    parts: Sequence[Cell] = table.where(kind="count")
    for cell in table.where(kind="sum"):
        result = work(lambda take: total([take(part) for part in parts]))
        yield held(cell, result, " + ".join(part.printed for part in parts))


def _rows_of_chain(table: Table) -> Iterator[Replayed]:
    """Yield the sum of the probabilities that leave each state, which is 1."""
    for state in dict.fromkeys(cell.labels["from"] for cell in table.cells):
        edges = [cell for cell in table.cells if cell.labels["from"] == state]
        value = sum((cell.number for cell in edges), Fraction(0))
        yield Replayed(
            table=table.id,
            cell=f"from={state}",
            quantity="sum of probabilities",
            printed="1",
            recomputed=rounding.significant(value),
            unit="",
            low=float(value),
            high=float(value),
            formula=" + ".join(cell.printed for cell in edges),
            status=Status.EQUAL if value == 1 else Status.DIFFERS,
        )


def of_equation(equation: Equation) -> Replayed:
    """Return an equation of the text, recomputed."""
    result = Worked(
        rounding.evaluate(equation.expression, rounded=False).middle, rounding.evaluate(equation.expression, rounded=True)
    )
    return Replayed(
        table=f"{equation.source} {equation.place}",
        cell=equation.id,
        quantity="text",
        printed=equation.printed,
        recomputed=rounding.shown(result.value, equation.decimals + 1),
        unit=equation.unit,
        low=float(result.span.low),
        high=float(result.span.high),
        formula=equation.expression,
        status=status(result, equation.value, equation.decimals),
    )
