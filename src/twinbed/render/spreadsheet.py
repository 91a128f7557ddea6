"""CSV (RFC 4180, but lines end in LF). A text that a spreadsheet would take for a formula gets an apostrophe before it, in
headers too, as OWASP advises ("CSV Injection"); control and bidirectional characters are escaped.

Such texts may come from hosts and files of strangers. Numbers stay as they are, negative ones and those written as text too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from twinbed.terminal import visible

if TYPE_CHECKING:
    import pyarrow as pa

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""The last four are the same in the width of Chinese characters: some spreadsheets take them for the others."""


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV; None is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (header, *rows):
        writer.writerow([harmless(value) for value in row])
    return text.getvalue()


def harmless(value: object) -> object:
    """Return the value, or for a text what a spreadsheet shows as that text. A carriage return becomes a line feed, which
    Python's writer quotes."""
    if not isinstance(value, str):
        return value
    text = visible(value.replace("\r", "\n"))
    return f"'{text}" if value.startswith(STARTS) and not _is_number(value) else text


def harmless_table(table: pa.Table) -> pa.Table:
    """Return the table with such texts in all columns of texts, and in their names."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        texts = table[at]
        if pa.types.is_dictionary(field.type):
            texts = texts.cast(field.type.value_type)
        if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
            continue
        if _is_suspect(texts):
            mended = [None if text is None else harmless(text) for text in texts.to_pylist()]
            table = table.set_column(at, field.name, pa.array(mended, texts.type))
    return table.rename_columns([str(harmless(name)) for name in table.column_names])


def _is_suspect(texts: pa.ChunkedArray) -> bool:
    """Return whether any of the texts may not be what ``harmless`` gives; most columns need no list of Python's texts."""
    import pyarrow.compute as pc

    if any(pc.any(pc.starts_with(texts, start)).as_py() for start in STARTS):
        return True
    return bool(pc.any(pc.match_substring_regex(texts, r"[^\n\t -~]")).as_py())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
