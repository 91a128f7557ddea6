"""``tcptrace -l``: the long text, as the table ``flows`` and the sums that the instrument ``packets`` has.

Rows are read as ``twinbed flows`` would give them, as far as tcptrace prints: its times have a tenth of a millisecond, its
means no fraction.  Round-trip times are there with ``-r`` alone.

Limits: the moments of first and last packets are in a time zone that the text does not name, so they are null; how far apart
they are is used.  Services by name (without ``-n``) leave ports null.  Resets are printed where there are any, else null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count
from twinbed.imports.text.tcptrace import METRICS, SIDES, Row, address, cells, measured, named, table, values
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document

_START = re.compile(rb"^Ostermann's tcptrace\b|^TCP connection \d+:\s*$", re.MULTILINE)
_CONNECTION = re.compile(r"TCP connection (\d+):\s*")
_ABOUT = re.compile(r"\t([a-z ]+):\s+(\S.*)")
_UNIT = r"(?: (pkts|bytes|times|ms|secs|Bps))?"
_BOTH = re.compile(rf"\s+(\S[^:]*?):\s+(\S+){_UNIT}\s+(\S[^:]*?):\s+(\S+){_UNIT}\s*")
_WHOLE = re.compile(r"(\w+)(?:\s+\(SYNs: (\d)\)\s+\(FINs: (\d)\))?")
_ELAPSED = re.compile(r"(\d{1,6}):(\d\d):(\d\d)\.(\d{6})")
_MOMENT = "%a %b %d %H:%M:%S.%f %Y"


@dataclass
class _Found:
    rows: list[Row] = field(default_factory=list)
    moments: list[datetime] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    ends: int = 0
    """How many hosts of the connection were named."""


class TcptraceText(Format):
    """The format."""

    name = "tcptrace-text"
    summary = "tcptrace -l"
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        report = _Found()
        for number, line in enumerate(source.text().split("\n"), start=1):
            _line(report, number, line)
        rows = [measured(row) for row in report.rows if row]
        if not rows:
            raise FormatError("no connection in it: tcptrace tells of each with -l alone")
        span_s = None
        if len(report.moments) == 2 * len(rows):
            span_s = (max(report.moments) - min(report.moments)).total_seconds()
        return [Measurement(list(values(rows, span_s)), {"flows": table(rows)}, (), report.diagnostics, {"protocol": "tcp"})]


def _line(report: _Found, number: int, line: str) -> None:
    if _CONNECTION.fullmatch(line):
        report.rows.append({})
        report.ends = 0
    elif not report.rows:
        return
    elif about := _ABOUT.fullmatch(line.rstrip()):
        try:
            _about(report, about[1], about[2])
        except ValueError:
            report.diagnostics.append(Diagnostic(f"{about[1]} cannot be read: {about[2][:60]}", number))
    elif both := _BOTH.fullmatch(line):
        _statistic(report, number, both)
    elif line.startswith("     "):
        report.diagnostics.append(Diagnostic(f"cannot be read: {line.strip()[:80]}", number))


def _about(report: _Found, name: str, text: str) -> None:
    """Raises ValueError."""
    row = report.rows[-1]
    if name.startswith("host ") and report.ends < 2:
        side = "ab"[report.ends]
        report.ends += 1
        host, _, port = text.rpartition(":")
        row |= {f"host_{side}": address(host), f"port_{side}": None}
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


def _statistic(report: _Found, number: int, both: re.Match[str]) -> None:
    for ending, (name, text, unit) in zip(SIDES.values(), (both.group(1, 2, 3), both.group(4, 5, 6)), strict=True):
        column = named(name)
        if column == "initial_window":
            column = f"initial_window_{unit}"
        try:
            report.rows[-1] |= dict(cells(column + ending, text))
        except ValueError:
            report.diagnostics.append(Diagnostic(f"{name} cannot be read: {text[:40]}", number))
            report.rows[-1][column + ending] = None


tcptrace_text = TcptraceText()
