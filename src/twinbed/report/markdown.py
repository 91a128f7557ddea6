"""Write the report as Markdown (GitHub's tables): verdict, cautions, a table a headline metric, analyses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twinbed.analyses.compare.section import cautions_section, layer_sections, spread_section, verdict_section
from twinbed.model.comparison import Comparisons
from twinbed.model.tables import Tables
from twinbed.render.markdown import plain, table
from twinbed.render.sections import matrix_tabular, parts, tabular
from twinbed.render.tabular import Tabular
from twinbed.report.pivots import Table, as_tabular, footnotes, marks
from twinbed.show.section import Listing, Matrix, Section
from twinbed.show.table import Table as ShownTable
from twinbed.show.words import other_settings


def markdown(
    tables: Tables,
    result: Comparisons,
    sections: Sequence[Section] = (),
    own: Sequence[Table] = (),
    over_n: Section | None = None,
) -> str:
    """Return the whole text."""
    lines = [f"# {plain(tables.outline.name)}", ""]
    if tables.other_settings:
        lines += [f"{other_settings(tables.other_settings)}.", ""]
    verdict = verdict_section(result)
    lines += [f"**{plain(verdict.sentence)}**", *_items(verdict)]
    if over_n:
        lines += ["", f"## {plain(over_n.title)}", "", *(f"- **{plain(text)}**" for text in over_n.answers)]
        lines += [f"- {plain(text)}" for text in over_n.texts() if text not in over_n.answers]
        for shown in over_n.tables(folded=False):
            lines += _own_table(tabular(shown), "###") if shown.records and shown.shown else []
    lines += ["", "## Cautions", *_items(cautions_section(result, everything=True))]
    if not result.cautions:
        lines += ["", "None."]
    notes = marks(own)
    for asked in own:
        lines += _own_table(as_tabular(asked, notes))
    if notes:
        lines += ["", *(f"- {plain(note)}" for note in footnotes(notes))]
    for layer in layer_sections(result):
        if any(isinstance(item, Section) and not item.folded for item in layer.items):
            lines += ["", f"## {plain(layer.title)}", "", plain(layer.sentence), *_items(layer)]
    for section in filter(None, (spread_section(result),)):
        lines += ["", f"## {plain(section.title)}", "", plain(section.sentence), *_items(section)]
    for section in sections:
        lines += ["", f"## {plain(section.title)}", *_section(section)]
    return "\n".join(lines) + "\n"


def _items(section: Section, level: str = "###") -> Iterator[str]:
    """Yield what a section of comparisons has, but for its figures."""
    for item in section.items:
        match item:
            case str():
                yield from ("", plain(item))
            case tuple():
                yield from ("", *(f"- {plain(text)}" for text in item))
            case Listing():
                yield from ("", f"**{plain(item.title)}**", "", *(f"- {plain(text)}" for text in item.texts))
                yield from ("", f"To do: {item.ending}.") if item.ending else ()
            case Matrix():
                yield from ("", plain(item.caption), "", *table(matrix_tabular(item)))
            case ShownTable():
                yield from ("", *table(tabular(item)), "", plain(item.caption))
            case Section() if item.in_text:
                yield from ("", f"{level} {plain(item.title)}", *_items(item, f"{level}#"))
            case _:
                pass


def _own_table(shown: Tabular, marks_title: str = "##") -> Iterator[str]:
    """Yield a table that the study file asks for, or one of another section."""
    yield from ("", f"{marks_title} {plain(shown.title)}", "", plain(shown.caption), "")
    yield from table(shown)


def _section(section: Section) -> Iterator[str]:
    """Yield what an analysis gives to a report."""
    for part in parts(section):
        yield from ("", f"### {plain(part.title)}", "", plain(part.sentence))
        if part.table is not None:
            yield ""
            yield from table(part.table)
