"""Formats ``tcptrace-csv`` and ``tcptrace-text``: tcptrace's statistics, of ``tcptrace -l --csv`` and ``tcptrace -l``.

Rows are the table ``flows``, under the names and units of ``twinbed flows`` as far as tcptrace prints them, and give sums of
the instrument ``packets``.  A row is a connection; a is its opener, the client.  Times are seconds, where tcptrace prints
milliseconds too; they have a tenth of a millisecond, and means no fraction.  A 0 that tcptrace prints for want of a sample is
null.  Round-trip times need ``-r``.  Packets that are not TCP are not counted, so there is no number of all packets.

Limits of the text: the moments of first and last packets are in a time zone that the text does not name, so they are null; the
time between them is used.  Services by name (without ``-n``) leave ports null.  Resets are printed where there are any, else
they are null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import chosen, count, real, table, total, unread
from twinbed.metrics.metric import Value
from twinbed.metrics.packets import METRICS as PACKETS
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

Cell = Fact | None
Row = dict[str, Cell]

_SPELLINGS = {" ": "_", "-": "_", "sack_blks/ack": "sack_blks_per_ack", "#_": "", "(last)": "last"}
"""tcptrace's -> ours, where lower case and underscores are not enough."""
_DIRECTION = re.compile(r"_(?:a2b|b2a)$")
_MILLISECONDS = re.compile(r"idletime_max|rtt_(?!samples|full_sz_smpls)\w+|\w+_retr_time")
_REAL = re.compile(
    r"first_packet|last_packet|elapsed_time|(?:avg|wavg)_(?:segm_size|win_adv|owin)|data_xmit_time|throughput|"
    + _MILLISECONDS.pattern
)
_UNMEASURED: Sequence[tuple[re.Pattern[str], str, int]] = tuple(
    (re.compile(pattern), count, at_most)
    for pattern, count, at_most in (
        (r"(?:max|min|avg)_segm_size|initial_window_(?:bytes|pkts)|data_xmit_time|throughput", "actual_data_pkts", 0),
        (r"mss_requested", "syn_pkts_sent", 0),
        (r"rtt_(?:min|max|avg)", "rtt_samples", 0),
        (r"rtt_stdev", "rtt_samples", 2),
        (r"rtt_full_sz_(?:min|max|avg)", "rtt_full_sz_smpls", 0),
        (r"rtt_full_sz_stdev", "rtt_full_sz_smpls", 2),
        (r"rtt_(?:min|max|avg)_last", "ambiguous_acks", 0),
        (r"rtt_sdv_last", "ambiguous_acks", 2),
        (r"(?:min|max|avg|sdv)_retr_time", "max_retrans", 0),
    )
)
"""(columns, a count, at most): with so few samples a 0 is no measurement. ``rtt_from_3whs`` never has a count."""
_BELOW_ZERO = 1 << 63
"""Values of ``missed_data`` from here on were below zero: tcptrace prints them as unsigned."""
_LAST_PLACE_S = 1e-4
"""The last digit of times that tcptrace prints: a mean below it is rounding, not a measurement."""
_TYPES = {
    "string": ("host_a", "host_b", "complete_conn"),
    "uint16": ("port_a", "port_b"),
    "bool": ("req_sack", "req_1323_ws", "req_1323_ts"),
}
SIDES = {"client_to_server": "_a2b", "server_to_client": "_b2a"}
_SUMS = {
    "data_segments": "actual_data_pkts",
    "pure_acks": "pure_acks_sent",
    "retransmitted_segments": "rexmt_data_pkts",
    "out_of_order_segments": "outoforder_pkts",
}
_OTHERS = ("mean_segment_bytes", "max_segment_bytes", "rtt", "link_goodput")
METRICS = chosen(PACKETS, (*_SUMS, *_OTHERS))
_UNITS = {metric.name: metric.unit for metric in METRICS}


def _named(name: str) -> str:
    """Return a column's name as ``twinbed flows`` has it."""
    for theirs, own in _SPELLINGS.items():
        name = name.replace(theirs, own)
    return name.lower()


def cells(name: str, text: str) -> Iterator[tuple[str, Cell]]:
    """Yield a cell under our names: some of tcptrace's hold two values. Raises ValueError where it is no such cell."""
    base = _DIRECTION.sub("", name)
    ending = name[len(base) :]
    if base == "syn/fin_pkts_sent":
        yield from ((f"{flag}_pkts_sent{ending}", _count(part)) for flag, part in _parts(("syn", "fin"), text))
    elif base == "req_1323_ws/ts":
        yield from ((f"req_1323_{which}{ending}", _yes(part)) for which, part in _parts(("ws", "ts"), text))
    elif base == "req_sack":
        yield name, _yes(text)
    elif text == "NA":
        yield name, None
    elif _REAL.fullmatch(base):
        number = real(text)
        if number is None:
            raise ValueError(text)
        yield name, number * 1e-3 if _MILLISECONDS.fullmatch(base) else number
    elif base == "missed_data" and text.isdecimal() and _BELOW_ZERO <= int(text[:20]) < 2 * _BELOW_ZERO:
        yield name, int(text[:20]) - 2 * _BELOW_ZERO
    else:
        yield name, _count(text)


def _parts(names: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    parts = text.split("/")
    if len(parts) != len(names):
        raise ValueError(text)
    return zip(names, parts, strict=True)


def _count(text: str) -> int:
    number = count(text)
    if number is None:
        raise ValueError(text)
    return number


def _yes(text: str) -> bool:
    if text not in ("Y", "N"):
        raise ValueError(text)
    return text == "Y"


def _address(text: str) -> str:
    """Return an address without tcptrace's zeros: it writes fd09::0001 for fd09::1."""
    return re.sub(r"(^|:)0+(?=[0-9a-f])", r"\1", text) if ":" in text else text


def _measured(row: Row) -> Row:
    """Return the row without the zeros that mean no sample."""
    known = dict(row)
    for name, cell in row.items():
        base = _DIRECTION.sub("", name)
        if cell != 0 or isinstance(cell, bool):
            continue
        if base == "rtt_from_3whs":
            known[name] = None
        for pattern, counted, at_most in _UNMEASURED:
            samples = row.get(counted + name[len(base) :])
            if pattern.fullmatch(base) and isinstance(samples, int) and samples <= at_most:
                known[name] = None
    return known


def _table(rows: Sequence[Row]) -> pa.Table:
    """Return the table ``flows``: columns as ``twinbed flows`` has them, those that tcptrace printed."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table({name: (_type(name), [row.get(name) for row in rows]) for name in names})


def _type(name: str) -> str:
    base = _DIRECTION.sub("", name)
    for kind, names in _TYPES.items():
        if base in names:
            return kind
    return "float64" if _REAL.fullmatch(base) else "int64"


def _values(rows: Sequence[Row], span_s: float | None) -> Iterator[Value]:
    """``span_s``: from the first packet of any connection to the last. Null where a connection has no number."""
    for name, column in _SUMS.items():
        sums = [total(_column(rows, column + ending)) for ending in SIDES.values()]
        for direction, number in zip(SIDES, sums, strict=True):
            yield Value(name, number, _UNITS[name], direction=direction)
        yield Value(name, total(sums), _UNITS[name])
    for direction, ending in SIDES.items():
        for name in _OTHERS:
            yield Value(name, _other(name, rows, ending, span_s), _UNITS[name], direction=direction)


def _column(rows: Sequence[Row], name: str) -> list[float | None]:
    cells = [row.get(name) for row in rows]
    return [cell if isinstance(cell, int | float) else None for cell in cells]


def _other(name: str, rows: Sequence[Row], ending: str, span_s: float | None) -> float | None:
    if name == "mean_segment_bytes":
        return _ratio(total(_column(rows, f"actual_data_bytes{ending}")), total(_column(rows, f"actual_data_pkts{ending}")))
    if name == "max_segment_bytes":
        return max((size for size in _column(rows, f"max_segm_size{ending}") if size is not None), default=None)
    if name == "rtt":
        mean = _mean(_column(rows, f"rtt_avg{ending}"), _column(rows, f"rtt_samples{ending}"))
        return None if mean is None or mean < _LAST_PLACE_S else mean
    sent = total(_column(rows, f"unique_bytes_sent{ending}"))
    return _ratio(None if sent is None else 8 * sent, span_s)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _mean(numbers: Sequence[float | None], weights: Sequence[float | None]) -> float | None:
    pairs = [(number, weight) for number, weight in zip(numbers, weights, strict=True) if number is not None and weight]
    return sum(number * weight for number, weight in pairs) / sum(weight for _, weight in pairs) if pairs else None


def _measurement(
    rows: Sequence[Row], span_s: float | None, diagnostics: Sequence[Diagnostic], started_s: float | None = None
) -> Measurement:
    return Measurement(list(_values(rows, span_s)), {"flows": _table(rows)}, (), diagnostics, {"protocol": "tcp"}, started_s)


_START_CSV = re.compile(rb"^[ \t]*conn_#[ \t]*,[ \t]*host_a[ \t]*,", re.MULTILINE)
_TIME = re.compile(r"([0-8]?\d{1,9})\.(\d{1,6})")


def _read_csv(source: Source, options: Document) -> Sequence[Measurement]:
    diagnostics: list[Diagnostic] = []
    rows = _rows(source.text().split("\n"), diagnostics)
    if not rows:
        raise FormatError("has no connection")
    begun, ended = ([row.get(f"{which}_packet_ns") for row in rows] for which in ("first", "last"))
    first, last = ([moment for moment in moments if isinstance(moment, int)] for moments in (begun, ended))
    span_s = (max(last) - min(first)) / 1e9 if len(first) == len(last) == len(rows) else None
    started = min(first) / 1e9 if first else None
    return [_measurement(rows, span_s, diagnostics, started)]


def _rows(lines: Sequence[str], diagnostics: list[Diagnostic]) -> list[Row]:
    header: list[str] = []
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line.strip(", ") or line.startswith("#"):
            continue
        texts = [cell.strip() for cell in line.removesuffix(",").split(",")]
        if texts[0] == "conn_#":
            header = [_named(cell) for cell in texts]
        elif not header:
            continue
        elif len(texts) != len(header):
            diagnostics.append(Diagnostic(f"has {len(texts)} cells for {len(header)} columns", number))
        else:
            rows.append(_row(header, texts, number, diagnostics))
    return rows


def _row(header: Sequence[str], texts: Sequence[str], number: int, diagnostics: list[Diagnostic]) -> Row:
    row: Row = {}
    for name, text in zip(header, texts, strict=True):
        try:
            row |= dict(_cells(name, text))
        except ValueError:
            diagnostics.append(Diagnostic(f"{name} cannot be read: {text[:40]}", number))
            row[name] = None
    return _measured(row)


def _cells(name: str, text: str) -> Row:
    if name == "conn_#":
        return {}
    if name in ("host_a", "host_b"):
        return {name: _address(text)}
    if name in ("port_a", "port_b"):
        port = count(text)
        if port is None or port > 65535:
            raise ValueError(text)
        return {name: port}
    if name in ("first_packet", "last_packet"):
        return _moment(name, text)
    return dict(cells(name, text))


def _moment(name: str, text: str) -> Row:
    """Return a time. tcptrace prints microseconds without leading zeros: 1389719042.4547 is 1389719042.004547."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    nanoseconds = int(match[1]) * 10**9 + int(match[2]) * 1000
    return {name: nanoseconds / 1e9, f"{name}_ns": nanoseconds}


_START_TEXT = re.compile(rb"^Ostermann's tcptrace\b|^TCP connection \d+:\s*$", re.MULTILINE)
_CONNECTION = re.compile(r"TCP connection (\d+):\s*")
_ABOUT = re.compile(r"\t([a-z ]+):\s+(\S.*)")
_UNIT = r"(?: (pkts|bytes|times|ms|secs|Bps))?"
_BOTH = re.compile(rf"\s+(\S[^:]*?):\s+(\S+){_UNIT}\s+(\S[^:]*?):\s+(\S+){_UNIT}\s*")
_WHOLE = re.compile(r"(\w+)(?:\s+\(SYNs: (\d)\)\s+\(FINs: (\d)\))?")
_ELAPSED = re.compile(r"(\d{1,6}):(\d\d):(\d\d)\.(\d{6})")
_MOMENT = "%a %b %d %H:%M:%S.%f %Y"


@dataclass
class _Report:
    rows: list[Row] = field(default_factory=list)
    moments: list[datetime] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    ends: int = 0
    """How many hosts of the connection were named."""


def _read_text(source: Source, options: Document) -> Sequence[Measurement]:
    report = _Report()
    for number, line in enumerate(source.text().split("\n"), start=1):
        _line(report, number, line)
    rows = [_measured(row) for row in report.rows if row]
    if not rows:
        raise FormatError("has no connection; tcptrace prints connections with -l")
    span_s = None
    if len(report.moments) == 2 * len(rows):
        span_s = (max(report.moments) - min(report.moments)).total_seconds()
    return [_measurement(rows, span_s, report.diagnostics)]


def _line(report: _Report, number: int, line: str) -> None:
    if _CONNECTION.fullmatch(line):
        report.rows.append({})
        report.ends = 0
    elif not report.rows:
        return
    elif described := _ABOUT.fullmatch(line.rstrip()):
        try:
            _about(report, described[1], described[2])
        except ValueError:
            report.diagnostics.append(Diagnostic(f"{described[1]} cannot be read: {described[2][:60]}", number))
    elif both := _BOTH.fullmatch(line):
        _statistic(report, number, both)
    elif line.startswith("     "):
        report.diagnostics.append(unread(line, number))


def _about(report: _Report, name: str, text: str) -> None:
    """Raises ValueError."""
    row = report.rows[-1]
    if name.startswith("host ") and report.ends < 2:
        side = "ab"[report.ends]
        report.ends += 1
        host, _, port = text.rpartition(":")
        row |= {f"host_{side}": _address(host), f"port_{side}": None}
        if port.isdecimal():
            number = count(port)
            if number is None or number > 65535:
                raise ValueError(text)
            row[f"port_{side}"] = number
    elif name == "complete conn":
        match = _WHOLE.fullmatch(text)
        if match is None:
            raise ValueError(text)
        row["complete_conn"] = match[1].lower()
        if match[2]:
            row |= {"syns": int(match[2]), "fins": int(match[3])}
    elif name in ("first packet", "last packet"):
        report.moments.append(datetime.strptime(text, _MOMENT))
    elif name == "elapsed time":
        parts = _ELAPSED.fullmatch(text)
        if parts is None:
            raise ValueError(text)
        hours, minutes, seconds, microseconds = (int(part) for part in parts.groups())
        row["elapsed_time"] = hours * 3600 + minutes * 60 + seconds + microseconds / 1e6
    elif name == "total packets":
        packets = count(text)
        if packets is None:
            raise ValueError(text)
        row["total_packets"] = packets


def _statistic(report: _Report, number: int, both: re.Match[str]) -> None:
    for ending, (name, text, unit) in zip(SIDES.values(), (both.group(1, 2, 3), both.group(4, 5, 6)), strict=True):
        column = _named(name)
        if column == "initial_window":
            column = f"initial_window_{unit}"
        try:
            report.rows[-1] |= dict(cells(column + ending, text))
        except ValueError:
            report.diagnostics.append(Diagnostic(f"{name} cannot be read: {text[:40]}", number))
            report.rows[-1][column + ending] = None


FORMATS = (
    Format("tcptrace-text", "tcptrace -l", METRICS, _START_TEXT.search, _read_text),
    Format("tcptrace-csv", "tcptrace -l --csv", METRICS, _START_CSV.search, _read_csv),
)
