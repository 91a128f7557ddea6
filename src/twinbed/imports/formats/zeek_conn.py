"""Formats ``zeek-conn-tsv`` and ``zeek-conn-json``: Zeek's conn.log, tab-separated or as JSON, an object a line.

Rows are the table ``connections`` under the names of twinbed's own, and give sums of the instrument ``packets``.  The
originator opened the connection: it is the client.  A field that Zeek leaves unset is null.  Bytes of payload are not summed:
Zeek counts each once, and leaves them unset where a connection had one packet.

Separator, unset and empty fields of TSV are as the head of the file says.  Times in JSON are seconds since 1970 or as ISO 8601
has them (``LogAscii::json_timestamps``).  A line that is no connection is a diagnostic, and so is a field that does not fit its
kind; that field is then null.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import chosen, count, count_of_json, of_json, table, total
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import METRICS as PACKETS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

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
_TIMES = {"ts": "start", "duration": "duration"}
_SIDES = {"client_to_server": "originator", "server_to_client": "responder"}
METRICS = chosen(PACKETS, ["packets", "bytes", "connections", "incomplete_connections"])
_UNITS = {metric.name: metric.unit for metric in METRICS}
_SECONDS = re.compile(r"([0-8]?\d{1,9})(?:\.(\d{1,9}))?")
"""Up to the year 2255: nanoseconds since 1970 are 64 bits."""
_START_TSV = re.compile(rb"\A(?:#.*\n)*?#path.conn\s*$|^#fields.*\bid\.orig_h\b.*\bconn_state\b", re.MULTILINE)
_START_JSON = re.compile(rb'\A\s*\{(?=[^\n]*"id\.orig_h"\s*:)[^\n]*"conn_state"\s*:')
_ESCAPE = re.compile(r"#separator \\x([0-9a-fA-F]{2})")
_UNSET = object()
"""The value of a field that the log leaves unset."""
_MOST_PORT = 65535

Row = dict[str, Cell]
Time = Callable[[object], int | None]
Convert = Callable[[str, object], Cell]


@dataclass
class _Head:
    separator: str = "\t"
    unset: str = "-"
    empty: str = "(empty)"
    fields: list[str] = field(default_factory=list)
    other: bool = False
    """True if the lines below are of another log than conn.log."""


def _recognises_tsv(head: bytes) -> bool:
    return _START_TSV.search(head.replace(b"\r\n", b"\n")) is not None


def _read_tsv(source: Source, options: Document) -> Sequence[Measurement]:
    head, diagnostics = _Head(), list[Diagnostic]()
    rows: list[Row] = []
    for number, line in enumerate(source.text().split("\n"), start=1):
        if line.startswith("#"):
            _heading(head, line)
        elif line and head.fields and not head.other:
            texts = line.split(head.separator)
            if len(texts) != len(head.fields):
                diagnostics.append(Diagnostic(f"has {len(texts)} cells for {len(head.fields)} fields", number))
            else:
                cells = [_UNSET if text in (head.unset, head.empty) else text for text in texts]
                rows.append(_row(zip(head.fields, cells, strict=True), number, diagnostics, _tsv_time, _tsv_cell))
    if not head.fields:
        raise FormatError("has no line of #fields")
    return _measurements(rows, diagnostics)


def _heading(head: _Head, line: str) -> None:
    if escape := _ESCAPE.fullmatch(line.rstrip()):
        head.separator = chr(int(escape[1], 16))
        return
    name, *cells = line.split(head.separator)
    if name == "#path" and cells:
        head.other = cells[0] != "conn"
    elif name == "#fields" and not head.other:
        head.fields = cells
    elif name == "#unset_field" and cells:
        head.unset = cells[0]
    elif name == "#empty_field" and cells:
        head.empty = cells[0]


def _read_json(source: Source, options: Document) -> Sequence[Measurement]:
    diagnostics: list[Diagnostic] = []
    rows: list[Row] = []
    for number, line in enumerate(source.text().split("\n"), start=1):
        if not line.strip():
            continue
        try:
            fields = document(line)
        except FormatError as error:
            diagnostics.append(Diagnostic(error.reason, number))
            continue
        if not isinstance(fields, dict) or "id.orig_h" not in fields:
            diagnostics.append(Diagnostic("is not a connection", number))
            continue
        known = [(name, fields[name]) for name in (*_TIMES, *COLUMNS) if name in fields]
        rows.append(_row(known, number, diagnostics, _json_time, _json_cell))
    return _measurements(rows, diagnostics)


def _row(fields: Iterable[tuple[str, object]], number: int, diagnostics: list[Diagnostic], time: Time, convert: Convert) -> Row:
    """Return the fields that are known, under twinbed's names."""
    row: Row = {}
    for name, value in fields:
        cell: Cell
        if name in _TIMES:
            cell = time_ns = None if value is _UNSET else time(value)
            row |= {f"{_TIMES[name]}_s": None if time_ns is None else time_ns / 1e9, f"{_TIMES[name]}_ns": time_ns}
        elif name in COLUMNS:
            column, kind = COLUMNS[name]
            cell = row[column] = None if value is _UNSET else convert(kind, value)
        else:
            continue
        if cell is None and value is not _UNSET:
            diagnostics.append(Diagnostic(f"{name} cannot be read: {str(value)[:40]}", number))
    return row


def _tsv_time(value: object) -> int | None:
    """Return nanoseconds of seconds as text, without a detour by floating point, or of an ISO 8601 time."""
    text = str(value)
    if match := _SECONDS.fullmatch(text):
        return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or not 1970 < moment.year < 2200:
        return None
    return int(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000


def _json_time(value: object) -> int | None:
    """Return nanoseconds. Zeek writes microseconds: a binary fraction is rounded to them."""
    if isinstance(value, str):
        return _tsv_time(value)
    seconds = of_json(value)
    return int(round(Decimal(seconds), 6) * 10**9) if seconds is not None and 0 <= seconds < 9e9 else None


def _tsv_cell(kind: str, value: object) -> Cell:
    return str(value) if kind == "string" else _number(kind, count(str(value)))


def _json_cell(kind: str, value: object) -> Cell:
    if kind == "string":
        return value.encode(errors="replace").decode() if isinstance(value, str) else None
    return _number(kind, count_of_json(value))


def _number(kind: str, number: int | None) -> int | None:
    return None if kind == "port" and number is not None and number > _MOST_PORT else number


def _measurements(rows: Sequence[Row], diagnostics: Sequence[Diagnostic]) -> Sequence[Measurement]:
    if not rows:
        raise FormatError("has no connection")
    starts = [start for row in rows if isinstance(start := row.get("start_s"), float)]
    tables, cautions = {"connections": _table(rows)}, list(_cautions(rows))
    return [Measurement(list(_values(rows)), tables, cautions, diagnostics, {}, min(starts, default=None))]


def _values(rows: Sequence[Row]) -> Iterator[Value]:
    for name, column in (("packets", "packets"), ("bytes", "ip_bytes")):
        sums = [total(_counts(rows, f"{side}_{column}")) for side in _SIDES.values()]
        for direction, number in zip(_SIDES, sums, strict=True):
            yield Value(name, number, _UNITS[name], direction=direction)
        yield Value(name, total(sums), _UNITS[name])
    yield Value("connections", len(rows), _UNITS["connections"])
    tcp = [row.get("state") for row in rows if row.get("protocol") == "tcp"]
    known = None not in tcp and all(row.get("protocol") is not None for row in rows)
    incomplete = sum(state != "SF" for state in tcp) if known else None
    yield Value("incomplete_connections", incomplete, _UNITS["incomplete_connections"])


def _counts(rows: Sequence[Row], column: str) -> Iterator[int | None]:
    for row in rows:
        number = row.get(column)
        yield number if isinstance(number, int) else None


def _cautions(rows: Sequence[Row]) -> Iterator[Caution]:
    missed = [number for number in _counts(rows, "missed_bytes") if number is not None and number > 0]
    if missed:
        yield Caution(Kind.CAPTURE_DROPS, f"Zeek missed {sum(missed)} bytes in {len(missed)} of {len(rows)} connections")


def _table(rows: Sequence[Row]) -> pa.Table:
    kinds = {"start_s": "float64", "start_ns": "int64", "duration_s": "float64", "duration_ns": "int64"}
    kinds |= {column: {"port": "uint16", "count": "int64"}.get(kind, kind) for column, kind in COLUMNS.values()}
    present = {name for row in rows for name in row}
    return table({name: (kind, [row.get(name) for row in rows]) for name, kind in kinds.items() if name in present})


FORMATS = (
    Format("zeek-conn-tsv", "Zeek's conn.log, tab-separated", METRICS, _recognises_tsv, _read_tsv),
    Format("zeek-conn-json", "Zeek's conn.log, one JSON object per line", METRICS, _START_JSON.search, _read_json),
)
