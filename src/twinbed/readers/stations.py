"""Output of ``twinbed-probe stations`` (docs/probe/STATIONS.md): one host's rows, connections and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.metrics.events import RECORDS
from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTS = {
    "lost": "for which the kernel's ring had no room",
    "missed": "during another on the same CPU",
    "beyond": "beyond the limit",
    "unknown": "that the reader does not know",
}
"""Fact of a file -> the records that were lost."""


@dataclass(frozen=True, slots=True)
class Place:
    """One host's stations."""

    name: str
    rows: pa.Table
    connections: pa.Table
    facts: dict[str, str]

    def value(self) -> Value:
        return Value(RECORDS.name, self.rows.num_rows, RECORDS.unit, self.name)

    def probe(self) -> pa.Table:
        """Return a row: host, clock (own, shared), kernel, share, records, lost, missed, beyond, clocks_within_ns."""
        import pyarrow as pa

        texts = {name: pa.array([self.facts.get(name)], pa.string()) for name in ("clock", "kernel")}
        counts = ("lost", "missed", "beyond", "clocks_within_ns")
        return pa.table(
            {
                "host": pa.array([self.name], pa.string()),
                **texts,
                "share": pa.array([float(self.facts.get("share", "nan"))], pa.float64()),
                "records": pa.array([self.rows.num_rows], pa.int64()),
                **{name: pa.array([int(self.facts[name])], pa.int64()) for name in counts},
            }
        )

    def cautions(self) -> Iterator[Caution]:
        for fact, what in _COUNTS.items():
            if count := int(self.facts[fact]):
                yield Caution(Kind.STATIONS_LOST, f"{count} {what}", self.name)
        if cut_off := self.facts.get("cut_off"):
            yield Caution(Kind.STATIONS_LOST, f"the file is not whole: {cut_off}", self.name)


def read_place(file: Path) -> Place:
    """Read a file. Raises OSError, or ValueError where it is no such file."""
    import pyarrow as pa

    connections, rows = _core.stations(file)
    host = file.parent.name
    facts = {key.decode(): value.decode() for key, value in (rows.schema.metadata or {}).items()}

    def of_host(table: pa.Table) -> pa.Table:
        return table.replace_schema_metadata(None).add_column(0, "host", pa.repeat(host, table.num_rows))

    return Place(host, of_host(rows), of_host(connections), facts)
