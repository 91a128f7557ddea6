"""Connections as any observer logs them, in one shape: the table ``monitored_connections``.

Columns: link, observer (``twinbed``, ``suricata``, ``zeek``), checksums (``ignored``, ``checked``), start_s, protocol,
ip_protocol, originator_address, originator_port, responder_address, responder_port, state, packets (both ways).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

TWINBED = "twinbed"
IGNORED, CHECKED = "ignored", "checked"
ENDS = ("originator_address", "originator_port", "responder_address", "responder_port")
IP_PROTOCOLS: Mapping[str, int] = {"icmp": 1, "tcp": 6, "udp": 17, "ipv6-icmp": 58}

Connection = Mapping[str, str | int | float | None]
"""A row, without the first three columns."""


def of_log(link: str, checksums: str, log: pa.Table) -> pa.Table:
    """Return rows of the core's own log."""
    import pyarrow.compute as pc

    packets = pc.add(log["originator_packets"], log["responder_packets"])
    columns = ["start_s", "protocol", "ip_protocol", *ENDS, "state"]
    return _labelled(link, TWINBED, checksums, log.select(columns).append_column("packets", packets).cast(_schema()))


def of_rows(link: str, observer: str, checksums: str, rows: Sequence[Connection]) -> pa.Table:
    """Return rows of an engine's output."""
    import pyarrow as pa

    return _labelled(link, observer, checksums, pa.Table.from_pylist(list(rows), schema=_schema()))


def _schema() -> pa.Schema:
    import pyarrow as pa

    ends = [(name, pa.string() if name.endswith("address") else pa.int64()) for name in ENDS]
    return pa.schema(
        [
            ("start_s", pa.float64()),
            ("protocol", pa.string()),
            ("ip_protocol", pa.int64()),
            *ends,
            ("state", pa.string()),
            ("packets", pa.int64()),
        ]
    )


def _labelled(link: str, observer: str, checksums: str, rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    for at, (name, text) in enumerate((("link", link), ("observer", observer), ("checksums", checksums))):
        rows = rows.add_column(at, name, pa.array([text] * rows.num_rows, pa.string()))
    return rows
