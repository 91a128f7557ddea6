"""A connection log (``_core.connection_log``) as Zeek writes it: its tab-separated conn.log, and its JSON lines.

Source: Zeek's documentation of its ASCII writer and of ``Conn::Info``.  Times are to the microsecond, which is what Zeek
reads captures with: a finer capture's times are cut, and a duration is the difference of cut times.  A connection whose
duration is then 0 has none, and no bytes, as in Zeek.  Fields that twinbed does not know are unset: service,
local_orig, local_resp, tunnel_parents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import pyarrow as pa

UNSET = "-"
SECOND_US = 10**6

FIELDS = {
    "ts": "time",
    "uid": "string",
    "id.orig_h": "addr",
    "id.orig_p": "port",
    "id.resp_h": "addr",
    "id.resp_p": "port",
    "proto": "enum",
    "service": "string",
    "duration": "interval",
    "orig_bytes": "count",
    "resp_bytes": "count",
    "conn_state": "string",
    "local_orig": "bool",
    "local_resp": "bool",
    "missed_bytes": "count",
    "history": "string",
    "orig_pkts": "count",
    "orig_ip_bytes": "count",
    "resp_pkts": "count",
    "resp_ip_bytes": "count",
    "tunnel_parents": "set[string]",
    "ip_proto": "count",
}
"""Zeek's names, in its order, with their types."""

_SAME = {
    "uid": "uid",
    "id.orig_h": "originator_address",
    "id.orig_p": "originator_port",
    "id.resp_h": "responder_address",
    "id.resp_p": "responder_port",
    "proto": "protocol",
    "conn_state": "state",
    "missed_bytes": "missed_bytes",
    "history": "history",
    "orig_pkts": "originator_packets",
    "orig_ip_bytes": "originator_ip_bytes",
    "resp_pkts": "responder_packets",
    "resp_ip_bytes": "responder_ip_bytes",
    "ip_proto": "ip_protocol",
}
"""Zeek's name -> the table's, where the value is the same."""


def write_tsv(table: pa.Table, out: TextIO, now: Callable[[], datetime] = datetime.now) -> None:
    """Write conn.log; ``now`` gives the times of the ``#open`` and ``#close`` lines."""
    import pyarrow as pa
    import pyarrow.compute as pc

    head = ["#separator \\x09", "#set_separator\t,", "#empty_field\t(empty)", f"#unset_field\t{UNSET}", "#path\tconn"]
    head += [f"#open\t{_moment(now())}", "\t".join(["#fields", *FIELDS]), "\t".join(["#types", *FIELDS.values()])]
    out.write("\n".join(head) + "\n")
    for batch in table.to_batches():
        columns = _columns(batch)
        unset = pa.scalar(UNSET)
        cells = []
        for field in FIELDS:
            column = columns.get(field)
            if column is None:
                cells.append(unset)
                continue
            text = _seconds(column) if FIELDS[field] in ("time", "interval") else pc.cast(column, pa.string())
            cells.append(pc.fill_null(text, unset))
        lines = pc.binary_join_element_wise(*cells, "\t").to_pylist()
        out.writelines(f"{line}\n" for line in lines)
    out.write(f"#close\t{_moment(now())}\n")


def write_json(table: pa.Table, out: TextIO) -> None:
    """Write one object a line, as with ``LogAscii::use_json``: unset fields are left out."""
    for row in _rows(table):
        out.write(json.dumps(row, separators=(",", ":")) + "\n")


def _rows(table: pa.Table) -> Iterator[dict[str, object]]:
    for batch in table.to_batches():
        columns = {field: column.to_pylist() for field, column in _columns(batch).items()}
        fields = [field for field in FIELDS if field in columns]
        times = {field for field in fields if FIELDS[field] in ("time", "interval")}
        for at in range(batch.num_rows):
            values = ((field, columns[field][at]) for field in fields)
            yield {field: value / SECOND_US if field in times else value for field, value in values if value is not None}


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Return Zeek's fields, as far as they are known; times and intervals in microseconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    start_ns, duration_ns = batch["start_ns"], batch["duration_ns"]
    start_us = pc.divide(start_ns, 1000)
    duration_us = pc.subtract(pc.divide(pc.add(start_ns, duration_ns), 1000), start_us)
    lasts = pc.fill_null(pc.greater(duration_us, 0), False)
    none = pa.scalar(None, pa.int64())
    columns = {field: batch[name] for field, name in _SAME.items()}
    columns["ts"] = start_us
    columns["duration"] = pc.if_else(lasts, duration_us, none)
    columns["orig_bytes"] = pc.if_else(lasts, batch["originator_bytes"], none)
    columns["resp_bytes"] = pc.if_else(lasts, batch["responder_bytes"], none)
    return columns


def _seconds(microseconds: pa.Array) -> pa.Array:
    """Return seconds as ``%.6f``, without a detour by floating point."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = pc.divide(microseconds, SECOND_US)
    rest = pc.subtract(microseconds, pc.multiply(whole, SECOND_US))
    fraction = pc.utf8_lpad(pc.cast(rest, pa.string()), 6, "0")
    return pc.binary_join_element_wise(pc.cast(whole, pa.string()), fraction, ".")


def _moment(time: datetime) -> str:
    return time.strftime("%Y-%m-%d-%H-%M-%S")
