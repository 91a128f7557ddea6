"""Texts in CSV that a spreadsheet would take for a formula get an apostrophe before them, as OWASP advises ("CSV Injection").

Such texts may come from hosts and files of strangers. Numbers stay as they are, negative ones and those written as text too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

STARTS = ("=", "+", "-", "@", "\t", "\r")


def harmless(value: object) -> object:
    """The value; of a text what a spreadsheet shows as that text. A carriage return becomes a line feed, which Python's writer
    quotes."""
    if not isinstance(value, str):
        return value
    text = value.replace("\r", "\n")
    return f"'{text}" if value.startswith(STARTS) and not _is_number(value) else text


def harmless_table(table: pa.Table) -> pa.Table:
    """The table with such texts in all columns of texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        texts = table[at]
        if pa.types.is_dictionary(field.type):
            texts = texts.cast(field.type.value_type)
        if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
            continue
        if any(pc.any(pc.starts_with(texts, start)).as_py() for start in STARTS):
            mended = [None if text is None else harmless(text) for text in texts.to_pylist()]
            table = table.set_column(at, field.name, pa.array(mended, texts.type))
    return table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
