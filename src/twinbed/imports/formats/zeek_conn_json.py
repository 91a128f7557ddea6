"""Zeek's conn.log as JSON, an object a line, as the table ``connections`` and the sums that the instrument ``packets`` has.

Times are seconds since 1970 or as ISO 8601 has them (``LogAscii::json_timestamps``).  What Zeek leaves out is unset: null.  A
line that is no object is a flaw, and so is a value that is not what its field's kind says; that value is then null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from twinbed.contracts.format import Diagnostic, FormatError, Measurement, Source
from twinbed.imports.text.conn_log import COLUMNS, METRICS, Cell, measurement, moments, nanoseconds
from twinbed.imports.text.documents import document
from twinbed.imports.text.figures import count_of_json, of_json
from twinbed.metrics.metric import Metric

_START = re.compile(rb'\A\s*\{(?=[^\n]*"id\.orig_h"\s*:)[^\n]*"conn_state"\s*:')


class ZeekConnJson:
    """The format."""

    name = "zeek-conn-json"
    summary = "Zeek's conn.log, an object a line"
    metrics: Sequence[Metric] = METRICS
    work = ""
    rate = ""

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
        diagnostics: list[Diagnostic] = []
        rows: list[dict[str, Cell]] = []
        for number, line in enumerate(source.text().split("\n"), start=1):
            if not line.strip():
                continue
            try:
                said = document(line)
            except FormatError as error:
                diagnostics.append(Diagnostic(error.reason, number))
                continue
            if not isinstance(said, dict) or "id.orig_h" not in said:
                diagnostics.append(Diagnostic("no connection", number))
                continue
            rows.append(_row(said, number, diagnostics))
        if not rows:
            raise FormatError("no connection in it")
        return [measurement(rows, diagnostics)]


def _row(said: Mapping[str, Any], number: int, diagnostics: list[Diagnostic]) -> dict[str, Cell]:
    row: dict[str, Cell] = {}
    for name, column in (("ts", "start"), ("duration", "duration")):
        if name in said:
            found = _time(said[name])
            row |= moments(column, found)
            if found is None:
                diagnostics.append(Diagnostic(f"{name} cannot be read: {str(said[name])[:40]}", number))
    for name, (column, kind) in COLUMNS.items():
        if name in said:
            row[column] = _cell(kind, said[name])
            if row[column] is None:
                diagnostics.append(Diagnostic(f"{name} cannot be read: {str(said[name])[:40]}", number))
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
