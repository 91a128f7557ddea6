"""Tables on standard output: text for people, JSON and CSV for programs.  Missing is empty in text and CSV, null in JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from twinbed.render.spreadsheet import csv_text
from twinbed.terminal import as_json, one_line, say, say_text

STYLES = ("text", "json", "csv")

Row = Mapping[str, object]


def print_table(rows: Sequence[Row], style: str = "text", *, title: str = "") -> None:
    """Prints rows that have the same keys. On a terminal text is a rich table, elsewhere plain aligned columns."""
    if style == "json":
        print_json([dict(row) for row in rows])
    elif style == "csv":
        say_text(as_csv(rows))
    elif sys.stdout.isatty():
        _print_rich(rows, title)
    else:
        if title:
            say(title)
        say_text(as_text(rows))


def print_json(data: object) -> None:
    """Prints data as indented JSON."""
    say_text(as_json(data) + "\n")


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV (RFC 4180 but for line ends, which are LF), with a header."""
    if not rows:
        return ""
    return csv_text(rows[0], ([_cell(value) for value in row.values()] for row in rows))


def as_text(rows: Sequence[Row]) -> str:
    """Rows as aligned columns two spaces apart, with a header; columns of numbers to the right."""
    if not rows:
        return ""
    names = list(rows[0])
    cells = [[one_line(name) for name in names], *([one_line(_cell(row[name])) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    right = [_is_numeric(rows, name) for name in names]
    lines = []
    for line in cells:
        padded = (text.rjust(width) if r else text.ljust(width) for text, width, r in zip(line, widths, right, strict=True))
        lines.append("  ".join(padded).rstrip() + "\n")
    return "".join(lines)


def _print_rich(rows: Sequence[Row], title: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from twinbed.render.terminal import Terminal

    table = Table(
        title=Text(one_line(title)) if title else None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for name in rows[0] if rows else ():
        table.add_column(Text(one_line(name)), justify="right" if _is_numeric(rows, name) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(_cell(value))) for value in row.values()))
    Terminal().print(table)


def _is_numeric(rows: Sequence[Row], name: str) -> bool:
    values = [row[name] for row in rows if row[name] is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
