"""The comparisons as Markdown (GitHub's tables): verdicts, a table a headline metric, cautions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from twinbed.analyses.compare.estimate_tables import measured_tables
from twinbed.analyses.compare.grid import Grid, grid
from twinbed.analyses.compare.summary import summaries
from twinbed.analyses.compare.words import SYMBOLS, emulated, hardly_varies, held, varies
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.tables import Tables
from twinbed.render.markdown import plain, row, table
from twinbed.render.sections import parts, tabular
from twinbed.render.tabular import Tabular
from twinbed.report.pivots import Table, as_tabular, footnotes, marks
from twinbed.show.section import Section
from twinbed.show.words import LAYERS, cell_title, heading, metric_title, other_settings, p_text


def markdown(
    tables: Tables,
    result: Comparisons,
    sections: Sequence[Section] = (),
    own: Sequence[Table] = (),
    over_n: Section | None = None,
) -> str:
    """The whole text."""
    lines = [f"# {plain(tables.outline.name)}", ""]
    if tables.other_settings:
        lines += [f"{other_settings(tables.other_settings)}.", ""]
    if banner := emulated(result):
        lines += [f"**{plain(banner)}**", ""]
    if result.about:
        lines += [plain(result.about), ""]
    for summary in summaries(result):
        lines += [f"- **{plain(summary.testbed)}: {summary.verdict}.** {plain(summary.sentence)}"]
        lines += [f"  - {plain(text)}" for text in summary.advice]
    if over_n:
        lines += ["", f"## {plain(over_n.title)}", "", *(f"- **{plain(text)}**" for text in over_n.answers)]
        lines += [f"- {plain(text)}" for text in over_n.texts() if text not in over_n.answers]
        for shown in over_n.tables(folded=False):
            lines += _own_table(tabular(shown), "###") if shown.records and shown.shown else []
    notes = marks(own)
    for asked in own:
        lines += _own_table(as_tabular(asked, notes))
    if notes:
        lines += ["", *(f"- {plain(note)}" for note in footnotes(notes))]
    for measured in measured_tables(result):
        lines += _own_table(tabular(measured))
    headlines = [each for each in result.comparisons if each.headline]
    for layer, of_layer in groupby(headlines, key=lambda each: each.layer):
        lines += ["", f"## {LAYERS.get(layer, layer)}"]
        for key, group in groupby(of_layer, key=lambda each: (each.metric, each.host, each.direction)):
            lines += ["", f"### {plain(metric_title(*key))}", "", *_table(grid(list(group)))]
    if any(each.spread for each in headlines):
        lines += ["", "## Spread: how many times as much as the reference it varies", "", *_spreads(headlines)]
    for section in sections:
        lines += ["", f"## {plain(section.title)}", *_section(section)]
    lines += ["", "## Cautions", "", *(_cautions(result) if result.cautions else ["None."])]
    return "\n".join(lines) + "\n"


def _table(grid: Grid) -> Iterator[str]:
    names = ["cell", f"{grid.reference} (reference)", *grid.testbeds]
    yield row(names)
    yield row(["---", *["---:"] * (len(names) - 1)])
    for each_row in grid.rows:
        cells = [each_row.cell, each_row.reference]
        for each, mean in zip(each_row.comparisons, each_row.means, strict=True):
            cells.append("" if each is None else f"{mean}; {held(each)}; {SYMBOLS[each.verdict]} {each.verdict}")
        yield row(cells)


def _own_table(shown: Tabular, marks_title: str = "##") -> Iterator[str]:
    """One that the study file asks for, or of another section."""
    yield from ("", f"{marks_title} {plain(shown.title)}", "", plain(shown.caption), "")
    yield from table(shown)


def _spreads(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """A row a comparison."""
    yield row(["metric", "cell", comparisons[0].by, "spread", "p (Holm)"])
    yield row(["---"] * 5)
    for each in comparisons:
        if each.spread:
            title = metric_title(each.metric, each.host, each.direction)
            yield row(
                [
                    title,
                    cell_title(each.cell),
                    each.testbed,
                    hardly_varies(each) or varies(each.spread),
                    p_text(each.spread.p_value),
                ]
            )


def _section(section: Section) -> Iterator[str]:
    """What an analysis gives to a report."""
    for part in parts(section):
        yield from ("", f"### {plain(part.title)}", "", plain(part.sentence))
        if part.table is not None:
            yield ""
            yield from table(part.table)


def _cautions(result: Comparisons) -> Iterator[str]:
    for kind in dict.fromkeys(each.kind for each in result.cautions):
        about = [
            ": ".join(part for part in (each.subject, each.detail) if part) for each in result.cautions if each.kind is kind
        ]
        yield f"- **{heading(kind.meaning)}.** To do: {kind.advice}."
        yield from (f"  - {plain(text)}" for text in about if text)
