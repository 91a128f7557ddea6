"""Two captures that share no packet: what became of the packets is not known, so that no count of the way is a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

Cell = TypeVar("Cell")
_AMOUNTS = ("lost", "partly_lost", "appeared", "duplicated", "edge_sent", "edge_arrived", "split", "merged")
UNKNOWN = frozenset(
    {
        *(f"{name}_{unit}" for name in _AMOUNTS for unit in ("packets", "payload_bytes")),
        *("lost_ranges", "reordered_packets", "three_reordered_packets", "capture_reordered_packets"),
        *("split_parts", "merged_parts"),
    }
)
"""Columns of the matching that say what happened between the captures."""


def unknown_row(row: Mapping[str, Cell]) -> dict[str, Cell | None]:
    """A row of the matching without what is not known."""
    return {name: None if name in UNKNOWN else value for name, value in row.items()}


def unknown_table(table: pa.Table) -> pa.Table:
    """A table of the matching without what is not known."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if field.name in UNKNOWN:
            nullable = field.with_nullable(True)
            table = table.set_column(at, nullable, pa.nulls(table.num_rows, field.type))
    return table
