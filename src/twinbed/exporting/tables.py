"""Tables as CSV and Parquet, with a dictionary of their columns.

CSV is RFC 4180 with LF, UTF-8, a header.  Texts are in quotes, so that an empty text (``""``) differs from a missing value
(nothing).  A text that a spreadsheet would take for a formula has an apostrophe before it.  Structures become columns
``name.inner``, lists JSON.  Parquet keeps every type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.api import Results
from twinbed.exporting.dictionary import described, dictionary, readme
from twinbed.render import output
from twinbed.render.spreadsheet import harmless_table

if TYPE_CHECKING:
    import pyarrow as pa

STYLES = ("csv", "parquet")
_INTERNAL = {"runs": ("levels", "key")}
"""Columns that repeat others, or that only twinbed needs."""


def write(results: Results, folder: Path, styles: Sequence[str], on_progress: Callable[[int, int], None]) -> dict[str, int]:
    """Write a file a table and style, ``dictionary.csv`` and ``README.md``; return the rows of each table."""
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    names = results.tables()
    rows: dict[str, int] = {}
    columns: list[dict[str, str | None]] = []
    for number, name in enumerate(names, start=1):
        table = tidy(results, name)
        rows[name] = table.num_rows
        if "parquet" in styles:
            pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
        if "csv" in styles:
            pc.write_csv(harmless_table(flat(table)), folder / f"{name}.csv")
        columns += dictionary(name, table, results.factors)
        on_progress(number, len(names))
    pc.write_csv(harmless_table(_rows(columns)), folder / "dictionary.csv")
    output.write(readme(results, rows, described(results)), folder / "README.md")
    return rows


def tidy(results: Results, name: str) -> pa.Table:
    """Return a table as it is exported: testbed and levels in columns, nothing internal."""
    table = results.table(name)
    return table.drop_columns([column for column in _INTERNAL.get(name, ()) if column in table.column_names])


def flat(table: pa.Table) -> pa.Table:
    """Return the table without nested columns."""
    import pyarrow as pa

    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for at, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            texts = [None if value is None else json.dumps(value, ensure_ascii=False) for value in table[at].to_pylist()]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def _rows(rows: Sequence[dict[str, str | None]]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows))
