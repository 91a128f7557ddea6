"""The tables that the study file asks for, as a section of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from twinbed.report.pivots import Table, as_tabular, footnotes, marks


def own_tables(own: Sequence[Table]) -> Iterator[str]:
    """Each with the marks of its numbers' cautions, which are said at the end; nothing where none is asked for."""
    if not own:
        return
    notes = marks(own)
    yield '<section id="tables"><h2>Tables</h2>'
    yield from (f"<h3>{escape(table.asked.title)}</h3>{as_tabular(table, notes).as_html()}" for table in own)
    yield from (f'<p class="note">{escape(note)}</p>' for note in footnotes(notes))
    yield "</section>"
