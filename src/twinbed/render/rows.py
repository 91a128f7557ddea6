"""Tables on standard output: text for people, JSON and CSV for programs.  Missing is empty in text and CSV, null in JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence

import click

from twinbed.render.spreadsheet import harmless

STYLES = ("text", "json", "csv")

Row = Mapping[str, object]


def print_table(rows: Sequence[Row], style: str = "text", *, title: str = "") -> None:
    """Prints rows that have the same keys. On a terminal text is a rich table, elsewhere plain aligned columns."""
    if style == "json":
        print_json([dict(row) for row in rows])
    elif style == "csv":
        click.echo(as_csv(rows), nl=False)
    elif sys.stdout.isatty():
        _print_rich(rows, title)
    else:
        if title:
            click.echo(title)
        click.echo(as_text(rows), nl=False)


def print_json(data: object) -> None:
    """Prints data as indented JSON."""
    click.echo(json.dumps(data, indent=1, ensure_ascii=False))


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV (RFC 4180 but for line ends, which are LF), with a header."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([harmless(name) for name in rows[0]])
    writer.writerows([harmless(_cell(value)) for value in row.values()] for row in rows)
    return text.getvalue()


def as_text(rows: Sequence[Row]) -> str:
    """Rows as aligned columns two spaces apart, with a header; columns of numbers to the right."""
    if not rows:
        return ""
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    right = [_is_numeric(rows, name) for name in names]
    lines = []
    for line in cells:
        padded = (text.rjust(width) if r else text.ljust(width) for text, width, r in zip(line, widths, right, strict=True))
        lines.append("  ".join(padded).rstrip() + "\n")
    return "".join(lines)


def _print_rich(rows: Sequence[Row], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in rows[0] if rows else ():
        table.add_column(name, justify="right" if _is_numeric(rows, name) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    Console().print(table)


def _is_numeric(rows: Sequence[Row], name: str) -> bool:
    values = [row[name] for row in rows if row[name] is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
