"""The seeds' methodology on their own numbers: every virtual testbed of every table compared with the physical one.

Each cell has two answers.  One is the seeds' rule: means that differ by no more than the margin.  The other, where n and a
spread are printed, is the verdict of ``compare`` from mean and standard error (``statistics.ratio``).  Both count
rounding: a rule is open if it depends on rounded digits, and a verdict holds for all means and spreads that round alike.
"different" is corrected by Holm over all comparisons of one source.

A half-width h of a 95 % interval "assuming a standard normal distribution" is 1.96 standard errors; a standard deviation s
of n values is sqrt(n) of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from twinbed.model.result import Verdict
from twinbed.published import rounding
from twinbed.published.audit import audit
from twinbed.published.limits import NORMAL_95
from twinbed.published.printed import Cell, Library, Table
from twinbed.published.rounding import Range
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.ratio import Summary, SummaryTest, summary_ratio_test

REFERENCE = "physical"
NORMAL = "normal 0.95"
"""The settings' name of an interval."""
CAUTIONS = ("goodput above the link", "request cap")
"""Rules of the audit that are about one cell's mean."""
SPREADS = ("interval half-width", "standard deviation")


@dataclass(frozen=True, slots=True)
class Held:
    """A cell compared with the physical testbed's. ``within_rule`` is None where rounding leaves it open or there is no ratio;
    ``verdict`` is None where no interval can be computed, for the reason ``because``."""

    source: str
    table: str
    cell: str
    metric: str
    labels: Mapping[str, str]
    testbed: str
    n: int | None
    printed: str
    reference: str
    ratio: float | None
    within_rule: bool | None
    intervals_overlap: bool | None
    ratio_low: float | None
    ratio_high: float | None
    p_equivalent: float | None
    p_different: float | None
    verdict: Verdict | None
    because: str
    cautions: Sequence[str]


def compare(library: Library, margin: float = 0.10, alpha: float = 0.05) -> list[Held]:
    """Return every comparison, in the order of the tables."""
    findings = _findings_by_cell(library)
    rows: list[Held] = []
    for table in library.tables.values():
        if "testbed" in table.labels:
            rows += _of_table(table, margin, alpha, findings)
    return _corrected(rows, alpha)


def _findings_by_cell(library: Library) -> Mapping[tuple[str, str], list[str]]:
    by_cell: dict[tuple[str, str], list[str]] = {}
    for finding in audit(library):
        if finding.rule in CAUTIONS:
            by_cell.setdefault((finding.table, finding.cell), []).append(finding.rule)
    return by_cell


def _of_table(table: Table, margin: float, alpha: float, findings: Mapping[tuple[str, str], list[str]]) -> Iterator[Held]:
    for cell in table.cells:
        if cell.kind == "power of ten":
            yield _relative(table, cell)
        if cell.kind not in ("mean", "count") or cell.labels["testbed"] == REFERENCE:
            continue
        reference = table.cell(kind=cell.kind, metric=cell.metric, **{**cell.labels, "testbed": REFERENCE})
        cautions = [
            f"{side.labels['testbed']}: {rule}"
            for side in (cell, reference)
            for rule in findings.get((table.id, side.name), ())
        ]
        yield _held(table, cell, reference, margin, alpha, cautions)


def _untested(table: Table, cell: Cell, printed: str, reference: str, because: str) -> Held:
    """Return a cell with the physical testbed's, not yet compared."""
    return Held(
        source=table.source,
        table=table.id,
        cell=cell.place,
        metric=cell.metric,
        labels={name: value for name, value in cell.labels.items() if name != "testbed"},
        testbed=cell.labels["testbed"],
        n=table.n,
        printed=printed,
        reference=reference,
        ratio=None,
        within_rule=None,
        intervals_overlap=None,
        ratio_low=None,
        ratio_high=None,
        p_equivalent=None,
        p_different=None,
        verdict=None,
        because=because,
        cautions=(),
    )


def _relative(table: Table, cell: Cell) -> Held:
    """Return a row for a ratio that is itself printed."""
    because = f"printed as a ratio already, of which {cell.printed} is the power of ten; no spread is printed"
    return replace(_untested(table, cell, cell.printed, "E0", because), within_rule=False)


def _held(table: Table, cell: Cell, reference: Cell, margin: float, alpha: float, cautions: Sequence[str]) -> Held:
    spreads = tuple(_spread(table, side) for side in (cell, reference))
    outcome = _tested(table, (cell, reference), spreads, margin, alpha)
    because = "" if outcome else _why_not(table, cell, reference, spreads[0])
    return replace(
        _untested(table, cell, _with_spread(cell, spreads[0]), _with_spread(reference, spreads[1]), because),
        ratio=float(cell.number / reference.number) if reference.number else None,
        within_rule=_within(cell, reference, margin),
        intervals_overlap=_overlap(table, (cell, reference), spreads),
        ratio_low=outcome.low if outcome else None,
        ratio_high=outcome.high if outcome else None,
        p_equivalent=outcome.p_equivalent if outcome else None,
        p_different=outcome.p_different if outcome else None,
        cautions=tuple(cautions),
    )


def _spread(table: Table, cell: Cell) -> Cell | None:
    spreads = [spread for spread in table.where(metric=cell.metric, **cell.labels) if spread.kind not in ("mean", "count")]
    return spreads[0] if spreads else None


def _with_spread(cell: Cell, spread: Cell | None) -> str:
    return f"{cell.printed} ± {spread.printed}" if spread else cell.printed


def _within(cell: Cell, reference: Cell, margin: float) -> bool | None:
    """Apply the seeds' rule (ICNC, section II) to all numbers that round to the printed ones; None where they disagree."""
    if not reference.number:
        return None
    apart = abs(cell.range / reference.range - Range.exactly(1)) if reference.range.low > 0 else None
    if apart is None:
        return None
    limit = rounding.evaluate(repr(margin), rounded=False).low
    if apart.high <= limit:
        return True
    return False if apart.low > limit else None


def _overlap(table: Table, cells: tuple[Cell, Cell], spreads: Sequence[Cell | None]) -> bool | None:
    """Return whether the 95 % intervals of the means overlap; None where none are printed or can be computed."""
    errors = [_error(table, spread) for spread in spreads]
    if None in errors:
        return None
    ends = [
        (float(cell.number) - NORMAL_95 * (error or 0), float(cell.number) + NORMAL_95 * (error or 0))
        for cell, error in zip(cells, errors, strict=True)
    ]
    return ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]


def _error(table: Table, spread: Cell | None, *, largest: bool = False) -> float | None:
    """Return the standard error of a printed spread (or the largest that rounds to it); None where it or n is unknown."""
    if spread is None or table.n is None:
        return None
    value = float(spread.range.high if largest else spread.number)
    if spread.kind == "interval half-width" and table.settings.get("interval") == NORMAL:
        return value / NORMAL_95
    return value / math.sqrt(table.n) if spread.kind == "standard deviation" else None


def _tested(
    table: Table, cells: tuple[Cell, Cell], spreads: Sequence[Cell | None], margin: float, alpha: float
) -> SummaryTest | None:
    """Test at the corners of rounding: a result holds at every one of them."""
    errors = [_error(table, spread, largest=True) for spread in spreads]
    if None in errors or table.n is None:
        return None
    ends = [{float(cell.number), float(cell.range.low), float(cell.range.high)} for cell in cells]
    tests = [
        summary_ratio_test(Summary(mean, errors[0] or 0.0, table.n), Summary(other, errors[1] or 0.0, table.n), margin, alpha)
        for mean, other in itertools.product(*ends)
    ]
    lows, highs = [test.low for test in tests], [test.high for test in tests]
    return SummaryTest(
        ratio=float(cells[0].number / cells[1].number),
        low=min((low for low in lows if low is not None), default=None) if None not in lows else None,
        high=max((high for high in highs if high is not None), default=None) if None not in highs else None,
        p_equivalent=max(test.p_equivalent for test in tests),
        p_different=max(test.p_different for test in tests),
    )


def _why_not(table: Table, cell: Cell, reference: Cell, spread: Cell | None) -> str:
    if not reference.number:
        return "the reference is 0: there is no ratio"
    if cell.kind == "count":
        return f"a ratio only: {table.n_said}"
    if spread is None:
        return "a ratio only: no spread is printed"
    if spread.kind not in SPREADS:
        return f"a ratio only: {table.n_said}"
    return f"a ratio only: the number of runs is not known; {table.n_said}"


def _corrected(rows: Sequence[Held], alpha: float) -> list[Held]:
    """Return verdicts, "different" after Holm's correction over the comparisons of one source."""
    decided = list(rows)
    for source in dict.fromkeys(row.source for row in rows):
        family = [index for index, row in enumerate(rows) if row.source == source and row.p_different is not None]
        adjusted = holm([rows[index].p_different or 0.0 for index in family])
        for index, p_different in zip(family, adjusted, strict=True):
            p_equivalent = rows[index].p_equivalent
            verdict = Verdict.INCONCLUSIVE
            if p_different <= alpha:
                verdict = Verdict.DIFFERENT
            elif p_equivalent is not None and p_equivalent <= alpha:
                verdict = Verdict.EQUIVALENT
            decided[index] = replace(rows[index], p_different=p_different, verdict=verdict)
    return decided
