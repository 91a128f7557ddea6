"""Zeek's conn.log as JSON, an object a line, as the table ``connections`` and the sums that the instrument ``packets`` has.

Times are seconds since 1970 or as ISO 8601 has them (``LogAscii::json_timestamps``).  What Zeek leaves out is unset: null.  A
line that is no object is a flaw, and so is a value that is not what its field's kind says; that value is then null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.conn_log import COLUMNS, METRICS, Cell, measurement, moments, nanoseconds
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import count_of_json, of_json
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_START = re.compile(rb'\A\s*\{(?=[^\n]*"id\.orig_h"\s*:)[^\n]*"conn_state"\s*:')


class ZeekConnJson(Format):
    """The format."""

    name = "zeek-conn-json"
    summary = "Zeek's conn.log, an object a line"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        diagnostics: list[Diagnostic] = []
        rows: list[dict[str, Cell]] = []
        for number, line in enumerate(source.text().split("\n"), start=1):
            if not line.strip():
                continue
            try:
                fields = document(line)
            except FormatError as error:
                diagnostics.append(Diagnostic(error.reason, number))
                continue
            if not isinstance(fields, dict) or "id.orig_h" not in fields:
                diagnostics.append(Diagnostic("no connection", number))
                continue
            rows.append(_row(fields, number, diagnostics))
        if not rows:
            raise FormatError("no connection in it")
        return [measurement(rows, diagnostics)]


def _row(fields: Document, number: int, diagnostics: list[Diagnostic]) -> dict[str, Cell]:
    row: dict[str, Cell] = {}
    for name, column in (("ts", "start"), ("duration", "duration")):
        if name in fields:
            moment_ns = _time(fields[name])
            row |= moments(column, moment_ns)
            if moment_ns is None:
                diagnostics.append(Diagnostic(f"{name} cannot be read: {str(fields[name])[:40]}", number))
    for name, (column, kind) in COLUMNS.items():
        if name in fields:
            row[column] = _cell(kind, fields[name])
            if row[column] is None:
                diagnostics.append(Diagnostic(f"{name} cannot be read: {str(fields[name])[:40]}", number))
    return row


def _time(value: object) -> int | None:
    """Zeek writes microseconds: a binary fraction is rounded to them."""
    if isinstance(value, str):
        return nanoseconds(value)
    seconds = of_json(value)
    return int(round(Decimal(seconds), 6) * 10**9) if seconds is not None and 0 <= seconds < 9e9 else None


def _cell(kind: str, value: object) -> Cell:
    if kind == "string":
        return value.encode(errors="replace").decode() if isinstance(value, str) else None
    number = count_of_json(value)
    return None if kind == "port" and number is not None and number > 65535 else number


zeek_conn_json = ZeekConnJson()
