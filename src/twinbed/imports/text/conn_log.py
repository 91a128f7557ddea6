"""Zeek's conn.log under the names of twinbed's own table ``connections``, whichever way it was written, and what it comes to.

The originator opened the connection: it is the client.  What Zeek leaves unset is null.  Bytes of payload are not summed: Zeek
counts each once, and leaves them unset where a connection had one packet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Measurement
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import METRICS as PACKETS
from twinbed.model.caution import Caution, Kind

if TYPE_CHECKING:
    import pyarrow as pa

Cell = str | int | float | None
COLUMNS: Mapping[str, tuple[str, str]] = {
    "uid": ("uid", "string"),
    "id.orig_h": ("originator_address", "string"),
    "id.orig_p": ("originator_port", "port"),
    "id.resp_h": ("responder_address", "string"),
    "id.resp_p": ("responder_port", "port"),
    "proto": ("protocol", "string"),
    "ip_proto": ("ip_protocol", "count"),
    "service": ("service", "string"),
    "orig_bytes": ("originator_bytes", "count"),
    "resp_bytes": ("responder_bytes", "count"),
    "conn_state": ("state", "string"),
    "missed_bytes": ("missed_bytes", "count"),
    "history": ("history", "string"),
    "orig_pkts": ("originator_packets", "count"),
    "orig_ip_bytes": ("originator_ip_bytes", "count"),
    "resp_pkts": ("responder_packets", "count"),
    "resp_ip_bytes": ("responder_ip_bytes", "count"),
}
"""Zeek's field -> (column, kind). ``ts`` and ``duration`` are two columns each: seconds and nanoseconds."""
_SIDES = {"client_to_server": "originator", "server_to_client": "responder"}
METRICS = tuple(metric for metric in PACKETS if metric.name in ("packets", "bytes", "connections", "incomplete_connections"))
_UNITS = {metric.name: metric.unit for metric in METRICS}
_SECONDS = re.compile(r"([0-8]?\d{1,9})(?:\.(\d{1,9}))?")
"""Up to the year 2255: nanoseconds since 1970 are 64 bits."""


def nanoseconds(text: str) -> int | None:
    """Nanoseconds of seconds as text, without a detour by floating point, or of an ISO 8601 time; None for anything else."""
    if match := _SECONDS.fullmatch(text):
        return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or not 1970 < moment.year < 2200:
        return None
    return int(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000


def measurement(rows: Sequence[Mapping[str, Cell]], diagnostics: Sequence[Diagnostic]) -> Measurement:
    """``rows`` have the columns that are known."""
    starts = [row.get("start_s") for row in rows]
    known = [start for start in starts if isinstance(start, float)]
    return Measurement(
        list(_values(rows)), {"connections": _table(rows)}, list(_gaps(rows)), diagnostics, {}, min(known, default=None)
    )


def moments(name: str, found_ns: int | None) -> dict[str, Cell]:
    """The two columns of a time or an interval."""
    return {f"{name}_s": None if found_ns is None else found_ns / 1e9, f"{name}_ns": found_ns}


def _values(rows: Sequence[Mapping[str, Cell]]) -> Iterator[Value]:
    for name, column in (("packets", "packets"), ("bytes", "ip_bytes")):
        sums = [_sum(rows, f"{side}_{column}") for side in _SIDES.values()]
        for way, number in zip(_SIDES, sums, strict=True):
            yield Value(name, number, _UNITS[name], direction=way)
        known = [number for number in sums if number is not None]
        yield Value(name, sum(known) if len(known) == len(sums) else None, _UNITS[name])
    yield Value("connections", len(rows), _UNITS["connections"])
    tcp = [row.get("state") for row in rows if row.get("protocol") == "tcp"]
    incomplete = None if None in tcp or any(row.get("protocol") is None for row in rows) else sum(each != "SF" for each in tcp)
    yield Value("incomplete_connections", incomplete, _UNITS["incomplete_connections"])


def _sum(rows: Sequence[Mapping[str, Cell]], column: str) -> int | None:
    numbers = [row.get(column) for row in rows]
    known = [number for number in numbers if isinstance(number, int)]
    return sum(known) if len(known) == len(numbers) else None


def _gaps(rows: Sequence[Mapping[str, Cell]]) -> Iterator[Caution]:
    missed = [number for row in rows if isinstance(number := row.get("missed_bytes"), int) and number > 0]
    if missed:
        yield Caution(Kind.CAPTURE_DROPS, f"Zeek missed {sum(missed)} bytes of {len(missed)} of {len(rows)} connections")


def _table(rows: Sequence[Mapping[str, Cell]]) -> pa.Table:
    import pyarrow as pa

    types: Mapping[str, pa.DataType] = {"string": pa.string(), "port": pa.uint16(), "count": pa.int64()}
    kinds = {"start_s": pa.float64(), "start_ns": pa.int64(), "duration_s": pa.float64(), "duration_ns": pa.int64()}
    kinds |= {column: types[kind] for column, kind in COLUMNS.values()}
    there = {name for row in rows for name in row}
    return pa.table({name: pa.array([row.get(name) for row in rows], kind) for name, kind in kinds.items() if name in there})
