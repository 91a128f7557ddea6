r"""The headline comparisons as LaTeX tables: for ``\input``, with the packages that the first line names in the document.

First the tables that the study file asks for. Then one a metric, as the field prints it: mean and half width of its interval by
cell and testbed; a testbed's mean is marked where it is shown to be equivalent (=) or different (\neq).  Then one a metric of
how much it varies, and of the analyses of variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from twinbed.analyses.compare.estimate_tables import measured_tables
from twinbed.analyses.compare.grid import Grid, Row, grid
from twinbed.analyses.compare.words import column_head, deviation, hardly_varies
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.result import Verdict
from twinbed.model.tables import Tables
from twinbed.render.latex_text import escape, needs, table
from twinbed.render.sections import parts as parts_of
from twinbed.render.sections import tabular
from twinbed.render.tabular import Tabular
from twinbed.report.pivots import Table, as_tabular, footnotes, marks
from twinbed.show.quantities import NONE, share
from twinbed.show.section import Section
from twinbed.show.words import cell_title, heading, metric_title, other_settings, p_text, times

MARKS = {Verdict.EQUIVALENT: r"$^{=}$", Verdict.DIFFERENT: r"$^{\neq}$", Verdict.INCONCLUSIVE: r"$^{?}$"}


def latex(tables: Tables, result: Comparisons, sections: Sequence[Section] = (), own: Sequence[Table] = ()) -> str:
    """The tables, one after the other."""
    name = tables.outline.name
    headlines = [each for each in result.comparisons if each.headline]
    parts = [f"% {other_settings(tables.other_settings)}"] if tables.other_settings else []
    for number, each in enumerate(own, start=1):
        notes = {kind: mark for kind, mark in marks(own).items() if kind in each.cautions}
        shown = as_tabular(each, notes)
        caption = " ".join([shown.caption, *footnotes(notes, advice=False)])
        parts.append(replace(shown, caption=caption).as_latex(f"tab-{number}-{each.asked.metric}"))
    for key, group in groupby(headlines, key=lambda each: (each.metric, each.host, each.direction)):
        comparisons = list(group)
        label = "-".join(["tab", *(part.replace("_", "-") for part in key if part)])
        level = next((each.estimate.interval.level for each in comparisons if each.estimate.interval), 0.95)
        within = f"{share(comparisons[0].margin)} of {comparisons[0].reference}"
        title = metric_title(*key)
        about = f"{heading(title)}: mean and {share(round(level, 4))} interval"
        caption = rf"{escape(about)}; = within {escape(within)}, $\neq$ not, ? undecided."
        parts.append(_table(grid(comparisons), caption, label))
    for key, group in groupby(headlines, key=lambda each: (each.metric, each.host, each.direction)):
        if varied := [each for each in group if each.spread]:
            parts.append(_spreads(varied).as_latex("-".join(["tab-spread", *(part for part in key if part)])))
    parts += [tabular(each).as_latex(f"tab-{each.title}") for each in measured_tables(result)]
    for part in (part for section in sections for part in parts_of(section)):
        if part.table is None:
            parts.append(f"% {escape(part.key)}: {escape(part.sentence)}")
        else:
            parts.append(replace(part.table, caption=part.sentence).as_latex(part.label))
    return "\n".join([f"% {escape(name)}: needs {needs(parts)}", *parts]) + "\n"


def _spreads(comparisons: Sequence[Comparison]) -> Tabular:
    """One metric's standard deviations beside the reference's, a row a comparison."""
    first = comparisons[0]
    rows = []
    for each in comparisons:
        spread = each.spread
        ratio_text = interval = p_value = NONE
        if spread is not None:
            meaningful = spread.ratio and not hardly_varies(each)
            ratio_text = times(spread.ratio) if meaningful and spread.ratio else NONE
            interval = (
                f"[{times(spread.interval.low)}, {times(spread.interval.high)}]" if meaningful and spread.interval else NONE
            )
            p_value = p_text(spread.p_value)
        deviations = (deviation(each, each.estimate), deviation(each, each.reference_estimate))
        rows.append((cell_title(each.cell), each.testbed, *deviations, ratio_text, interval, p_value))
    level = next((each.spread.interval.level for each in comparisons if each.spread and each.spread.interval), 0.95)
    family = next((each.spread.family for each in comparisons if each.spread), 1)
    caption = (
        f"Standard deviations (sd), how many times as much it varies as {first.reference} with the {share(round(level, 4))} "
        f"interval, and the p-value that both vary alike, corrected for {family} comparisons"
    )
    title = heading(metric_title(first.metric, first.host, first.direction))
    heads = ("Cell", column_head(first.by), "sd", f"sd of {first.reference}", "times", "interval", "p")
    return Tabular(f"{title}: spread", f"{caption}.", heads, tuple(rows), texts=2)


def _table(grid: Grid, caption: str, label: str) -> str:
    names = ["Cell", grid.reference, *grid.testbeds]
    columns = "l" + "r" * (len(names) - 1)
    return table(caption, label, columns, [escape(name) for name in names], ([*_cells(row)] for row in grid.rows))


def _cells(row: Row) -> Iterator[str]:
    yield escape(row.cell)
    yield escape(row.reference)
    for each, mean in zip(row.comparisons, row.means, strict=True):
        yield "" if each is None else escape(mean) + MARKS[each.verdict]
