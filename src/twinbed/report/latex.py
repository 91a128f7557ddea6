r"""The headline comparisons as LaTeX tables: for ``\input``, with the packages that the first line names in the document.

First the tables that the study file asks for. Then one a metric, as the field prints it: mean and half width of its interval by
cell and testbed; a testbed's mean is marked where it is shown to be equivalent (=) or different (\neq).  Then one a metric of
how much it varies, and of the analyses of variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from twinbed.analyses.compare.conclusion import conclusions, matrix
from twinbed.analyses.compare.grid import Grid, Row, grid
from twinbed.analyses.compare.section import lede
from twinbed.analyses.compare.tables import measured_tables, spread_table
from twinbed.model.comparison import Comparisons
from twinbed.model.result import Verdict
from twinbed.model.tables import Tables
from twinbed.render.latex_text import escape, needs, table
from twinbed.render.sections import matrix_tabular, tabular
from twinbed.render.sections import parts as parts_of
from twinbed.report.pivots import Table, as_tabular, footnotes, marks
from twinbed.show.quantities import share
from twinbed.show.section import Section
from twinbed.show.words import heading, metric_title, other_settings

MARKS = {Verdict.EQUIVALENT: r"$^{=}$", Verdict.DIFFERENT: r"$^{\neq}$", Verdict.INCONCLUSIVE: r"$^{?}$"}


def latex(tables: Tables, result: Comparisons, sections: Sequence[Section] = (), own: Sequence[Table] = ()) -> str:
    """Return the tables, one after the other."""
    name = tables.outline.name
    headlines = [comparison for comparison in result.comparisons if comparison.headline]
    parts = [f"% {other_settings(tables.other_settings)}"] if tables.other_settings else []
    parts += [f"% {escape(text)}" for text in _answers(result)]
    if headlines:
        parts.append(matrix_tabular(matrix(result)).as_latex("tab-verdicts"))
    for number, listed in enumerate(own, start=1):
        notes = {kind: mark for kind, mark in marks(own).items() if kind in listed.cautions}
        shown = as_tabular(listed, notes)
        caption = " ".join([shown.caption, *footnotes(notes, advice=False)])
        parts.append(replace(shown, caption=caption).as_latex(f"tab-{number}-{listed.asked.metric}"))
    for key, group in groupby(headlines, key=lambda comparison: (comparison.metric, comparison.host, comparison.direction)):
        comparisons = list(group)
        label = "-".join(["tab", *(part.replace("_", "-") for part in key if part)])
        level = next((comparison.estimate.interval.level for comparison in comparisons if comparison.estimate.interval), 0.95)
        within = f"{share(comparisons[0].margin)} of {comparisons[0].reference}"
        title = metric_title(*key)
        title_text = f"{heading(title)}: mean and {share(round(level, 4))} CI"
        caption = rf"{escape(title_text)}; = within {escape(within)}, $\neq$ not, ? inconclusive."
        parts.append(_table(grid(comparisons), caption, label))
    for key, group in groupby(headlines, key=lambda comparison: (comparison.metric, comparison.host, comparison.direction)):
        if varied := [comparison for comparison in group if comparison.spread]:
            label = "-".join(["tab-spread", *(part for part in key if part)])
            parts.append(tabular(spread_table(varied, f"{heading(metric_title(*key))}: spread")).as_latex(label))
    parts += [tabular(measured).as_latex(f"tab-{measured.title}") for measured in measured_tables(result)]
    for part in (part for section in sections for part in parts_of(section)):
        if part.table is None:
            parts.append(f"% {escape(part.key)}: {escape(part.sentence)}")
        else:
            parts.append(replace(part.table, caption=part.sentence).as_latex(part.label))
    return "\n".join([f"% {escape(name)}: needs {needs(parts)}", *parts]) + "\n"


def _answers(result: Comparisons) -> Iterator[str]:
    """Yield the conclusion, and what to use each testbed for, as comments: an author puts them in words of the paper."""
    yield from lede(result)
    for of in conclusions(result):
        lists = (("use it for", of.use_for), ("do not use it for", of.avoid_for), ("cannot tell yet", of.cannot_tell))
        yield from (f"{of.testbed}, {title}: {'; '.join(texts)}" for title, texts in lists if texts)


def _table(grid: Grid, caption: str, label: str) -> str:
    names = ["Cell", grid.reference, *grid.testbeds]
    columns = "l" + "r" * (len(names) - 1)
    return table(caption, label, columns, [escape(name) for name in names], ([*_cells(row)] for row in grid.rows))


def _cells(row: Row) -> Iterator[str]:
    yield escape(row.cell)
    yield escape(row.reference)
    for comparison, mean in zip(row.comparisons, row.means, strict=True):
        yield "" if comparison is None else escape(mean) + MARKS[comparison.verdict]
