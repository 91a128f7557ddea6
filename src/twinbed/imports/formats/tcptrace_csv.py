"""``tcptrace -l --csv``: a line of statistics a connection, as the table ``flows`` and the instrument ``packets``'s sums.

Rows are read as ``twinbed flows`` would give them, as far as tcptrace prints: its times have a tenth of a millisecond, its
means no fraction.  Round-trip times are there with ``-r`` alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count
from twinbed.imports.text.tcptrace import METRICS, Row, address, cells, measured, named, table, values
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_START = re.compile(rb"^[ \t]*conn_#[ \t]*,[ \t]*host_a[ \t]*,", re.MULTILINE)
_TIME = re.compile(r"([0-8]?\d{1,9})\.(\d{1,6})")


class TcptraceCsv(Format):
    """The format."""

    name = "tcptrace-csv"
    summary = "tcptrace -l --csv"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        diagnostics: list[Diagnostic] = []
        rows = _rows(source.text().split("\n"), diagnostics)
        if not rows:
            raise FormatError("no connection in it")
        begun, ended = ([row.get(f"{which}_packet_ns") for row in rows] for which in ("first", "last"))
        first, last = ([each for each in moments if isinstance(each, int)] for moments in (begun, ended))
        span_s = (max(last) - min(first)) / 1e9 if len(first) == len(last) == len(rows) else None
        started = min(first) / 1e9 if first else None
        return [Measurement(list(values(rows, span_s)), {"flows": table(rows)}, (), diagnostics, {"protocol": "tcp"}, started)]


def _rows(lines: Sequence[str], diagnostics: list[Diagnostic]) -> list[Row]:
    header: list[str] = []
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line.strip(", ") or line.startswith("#"):
            continue
        texts = [cell.strip() for cell in line.removesuffix(",").split(",")]
        if texts[0] == "conn_#":
            header = [named(cell) for cell in texts]
        elif not header:
            continue
        elif len(texts) != len(header):
            diagnostics.append(Diagnostic(f"{len(texts)} cells for {len(header)} columns", number))
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
    return measured(row)


def _cells(name: str, text: str) -> Row:
    if name == "conn_#":
        return {}
    if name in ("host_a", "host_b"):
        return {name: address(text)}
    if name in ("port_a", "port_b"):
        port = count(text)
        if port is None or port > 65535:
            raise ValueError(text)
        return {name: port}
    if name in ("first_packet", "last_packet"):
        return _moment(name, text)
    return dict(cells(name, text))


def _moment(name: str, text: str) -> Row:
    """tcptrace prints microseconds without their leading zeros: 1389719042.4547 is 1389719042.004547."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    nanoseconds = int(match[1]) * 10**9 + int(match[2]) * 1000
    return {name: nanoseconds / 1e9, f"{name}_ns": nanoseconds}


tcptrace_csv = TcptraceCsv()
