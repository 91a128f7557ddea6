"""Zeek's conn.log as tab-separated values, as the table ``connections`` and the sums that the instrument ``packets`` has.

Separator, unset and empty fields are as the head of the file says.  A line without a readable time or address is a flaw, and so
is a field that is not what its kind says; that field is then null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.conn_log import COLUMNS, METRICS, Cell, measurement, moments, nanoseconds
from twinbed.imports.text.figures import count
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_START = re.compile(rb"\A(?:#.*\n)*?#path.conn\s*$|^#fields.*\bid\.orig_h\b.*\bconn_state\b", re.MULTILINE)
_ESCAPE = re.compile(r"#separator \\x([0-9a-fA-F]{2})")


@dataclass
class _Head:
    separator: str = "\t"
    unset: str = "-"
    empty: str = "(empty)"
    fields: list[str] = field(default_factory=list)
    other: bool = False
    """Whether what follows is another log than conn.log."""


class ZeekConnTsv(Format):
    """The format."""

    name = "zeek-conn-tsv"
    summary = "Zeek's conn.log, tab-separated"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return _START.search(head.replace(b"\r\n", b"\n")) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        head, diagnostics = _Head(), list[Diagnostic]()
        rows: list[dict[str, Cell]] = []
        for number, line in enumerate(source.text().split("\n"), start=1):
            if line.startswith("#"):
                _heading(head, line)
            elif line and head.fields and not head.other:
                cells = line.split(head.separator)
                if len(cells) != len(head.fields):
                    diagnostics.append(Diagnostic(f"{len(cells)} cells for {len(head.fields)} fields", number))
                else:
                    rows.append(_row(head, cells, number, diagnostics))
        if not head.fields:
            raise FormatError("no line of #fields")
        if not rows:
            raise FormatError("no connection in it")
        return [measurement(rows, diagnostics)]


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


def _row(head: _Head, cells: Sequence[str], number: int, diagnostics: list[Diagnostic]) -> dict[str, Cell]:
    row: dict[str, Cell] = {}
    for name, text in zip(head.fields, cells, strict=True):
        missing = text in (head.unset, head.empty)
        if name in ("ts", "duration"):
            moment_ns = None if missing else nanoseconds(text)
            row |= moments("start" if name == "ts" else "duration", moment_ns)
        elif name in COLUMNS:
            column, kind = COLUMNS[name]
            found_ = None if missing else _cell(kind, text)
            row[column], moment_ns = found_, 0 if found_ is not None else None
        else:
            continue
        if moment_ns is None and not missing:
            diagnostics.append(Diagnostic(f"{name} cannot be read: {text[:40]}", number))
    return row


def _cell(kind: str, text: str) -> Cell:
    if kind == "string":
        return text
    number = count(text)
    return None if kind == "port" and number is not None and number > 65535 else number


zeek_conn_tsv = ZeekConnTsv()
