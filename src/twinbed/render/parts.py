"""Write a section without its figures: as HTML for a notebook, and as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup

from twinbed.render.html import html
from twinbed.render.sections import Part
from twinbed.render.tabular import Tabular

MOST_ROWS = 30
"""Rows of a table that is shown at a glance."""
WIDTH = 100


def as_html(parts: Sequence[Part]) -> Markup:
    """Return each part with its title, its sentence and its table."""
    return Markup().join(_html(part) for part in parts)


def _html(part: Part) -> Markup:
    sentence = html("<p>{}</p>", part.sentence) if part.sentence else ""
    if part.table is None or not part.table.rows:
        return html("<h4>{}</h4>{}", part.title, sentence)
    more = html("<p>{}</p>", rest) if (rest := _rest(part.table)) else ""
    return html("<h4>{}</h4>{}{}{}", part.title, sentence, _beginning(part.table).as_html(), more)


def as_text(parts: Sequence[Part]) -> str:
    """Return the same in lines of 100 characters, but for tables that are wider."""
    return "\n".join(line for part in parts for line in _text(part))


def _text(part: Part) -> Iterator[str]:
    table = part.table if part.table is not None and part.table.rows else None
    if table is None or part.title != table.title:
        yield part.title
    if part.sentence:
        yield textwrap.fill(part.sentence, WIDTH, break_long_words=False, break_on_hyphens=False)
    if table is not None:
        yield _beginning(table).as_text().rstrip("\n")
        if rest := _rest(table):
            yield rest


def _beginning(table: Tabular) -> Tabular:
    return replace(table, rows=table.rows[:MOST_ROWS])


def _rest(table: Tabular) -> str:
    count = len(table.rows) - MOST_ROWS
    return f"... and {count} more rows: to_pandas() and to_arrow() have all of them" if count > 0 else ""
