"""The tables that the study file asks for, as a section of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from twinbed.render.html import html
from twinbed.report.pivots import Table, as_tabular, footnotes, marks


def own_tables(own: Sequence[Table]) -> Iterator[Markup]:
    """Yield each table with the marks of its cautions, which the end explains; nothing where no table is asked for."""
    if not own:
        return
    notes = marks(own)
    yield Markup('<section id="tables"><h2>Tables</h2>')
    yield from (html("<h3>{}</h3>{}", table.asked.title, as_tabular(table, notes).as_html()) for table in own)
    yield from (html('<p class="note">{}</p>', note) for note in footnotes(notes))
    yield Markup("</section>")
