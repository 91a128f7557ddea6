"""Format ``iperf2``: what a client of iperf 2 prints, as Mininet's ``iperf`` starts it: its text, or its table (``-y C``).

``goodput`` of TCP is the client's own rate over the whole run, the only rate that it prints.  It counts data handed to the
kernel: at most the socket's buffer more than arrived.  ``goodput`` of UDP is from the server's report, and
missing where none came.  With several streams the sum counts.  Several runs in a text are several measurements.

Limits: a server's text is refused, since it does not say which of its connections were one test; a table of several connections
without their sum is refused for the same reason.  UDP's jitter is the last one, where iperf3's is a mean: it is not read.
Source: iperf(1) of 2.1.8, and what 2.0.5 and 2.1.8 print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import DECIMAL, SHOWN, chosen, head_text, real, rounding, values, whole_lines
from twinbed.imports.text.probing import loss
from twinbed.metrics.iperf3 import METRICS as IPERF3
from twinbed.model.json import Document

_NAMES = ("goodput", "sent_bytes", "time_taken", "sent_datagrams", "received_datagrams", "lost_datagrams", "loss")
_CLIENT = re.compile(r"^Client connecting to \S+,? .*(TCP|UDP) port [0-9]+", re.MULTILINE)
_SERVER = re.compile(r"^Server listening on (?:TCP|UDP) port ", re.MULTILINE)
_ROW = re.compile(
    rf"\[ *(?P<stream>[0-9]+|SUM)(?:-[0-9]+)?\] +(?P<start>{DECIMAL})- *(?P<end>{DECIMAL}) +sec"
    rf" +(?P<size>{DECIMAL}) (?P<of_size>[KMGT]?)Bytes"
    rf" +(?P<rate>{DECIMAL}) (?P<of_rate>[KMGT]?)bits/sec"
    rf"(?: +{DECIMAL} ms +(?P<lost>[0-9]{{1,15}})/ *(?P<total>[0-9]{{1,15}}) )?"
)
_SENT = re.compile(r"\[ *[0-9]+\] Sent ([0-9]{1,15}) datagrams")
_TABLE = re.compile(
    r"[0-9]{14}(?:\.[0-9]+)?,[0-9a-fA-F.:]+,[0-9]+,[0-9a-fA-F.:]+,[0-9]+,-?[0-9]+,[0-9.]+-[0-9.]+,[0-9]+,[0-9]+(?:,.*)?"
)
_SIZES = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_RATES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SUM = "SUM"
METRICS = chosen(IPERF3, _NAMES)


@dataclass(frozen=True, slots=True)
class _Row:
    stream: str
    start_s: float
    end_s: float
    size_bytes: float
    rate_bit_s: float
    step_bit_s: float = 0.0
    """By how much the rate may be rounded."""
    lost: int | None = None
    total: int | None = None


@dataclass(slots=True)
class _Run:
    line: int
    udp: bool
    rows: list[_Row] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)


def _recognises(head: bytes) -> bool:
    text = head_text(head)
    return any(pattern.search(text) for pattern in (_CLIENT, _SERVER)) or _TABLE.fullmatch(text.partition("\n")[0]) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    lines, cut = whole_lines(source.text(), ("bits/sec", "%)"))
    if _TABLE.fullmatch((lines or [""])[0]):
        return [_measurement(_of_table(lines), [])]
    if any(_SERVER.match(line) for line in lines):
        raise FormatError(
            "is from a server of iperf 2, which does not say which connections were one test; import the client's output"
        )
    runs: list[_Run] = []
    for number, line in enumerate(lines, start=1):
        if (begins := _CLIENT.match(line)) is not None:
            runs.append(_Run(number, begins[1] == "UDP"))
        elif runs and (match := _ROW.match(line)) is not None:
            runs[-1].rows.append(_row(match))
        elif runs and (sent := _SENT.match(line)) is not None:
            runs[-1].sent.append(int(sent[1]))
    measured = [run for run in runs if run.rows]
    if not measured:
        raise FormatError("has no run of iperf 2 that can be read")
    return [_measurement(run, cut if run is measured[-1] else []) for run in measured]


def _row(match: re.Match[str]) -> _Row:
    scale = _RATES[match["of_rate"]]
    lost, total = (int(match[name]) if match[name] else None for name in ("lost", "total"))
    size = float(match["size"]) * _SIZES[match["of_size"]]
    rate, step = float(match["rate"]) * scale, rounding(match["rate"]) * scale
    return _Row(match["stream"], float(match["start"]), float(match["end"]), size, rate, step, lost, total)


def _of_table(lines: Sequence[str]) -> _Run:
    """Read the table. Raises FormatError for several connections without their sum."""
    run = _Run(1, udp=False)
    connections: set[tuple[str, ...]] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if _TABLE.fullmatch(line) is None:
            raise FormatError(f"is not a row of iperf 2's table: {line.strip()[:SHOWN]!r}", number)
        cells = line.split(",")
        start, _, end = cells[6].partition("-")
        seconds = [real(text) for text in (start, end)]
        if None in seconds:
            raise FormatError(f"has no interval: {cells[6]!r}", number)
        stream = _SUM if cells[5] == "-1" else cells[5]
        connections.update(() if stream == _SUM else [(*cells[1:6],)])
        lost, total = (
            int(cell) if cell.isdecimal() and len(cell) < 16 else None
            for cell in (cells[10:12] if len(cells) > 11 else ("", ""))
        )
        run.udp |= len(cells) > 9
        run.rows.append(_Row(stream, seconds[0] or 0.0, seconds[1] or 0.0, float(cells[7]), float(cells[8]), 0.5, lost, total))
    if len(connections) > 1 and not any(row.stream == _SUM for row in run.rows):
        raise FormatError(
            f"has {len(connections)} connections and no sum, so they may have run in parallel or not; split the file"
        )
    return run


def _over_whole_run(run: _Run) -> list[_Row]:
    """Return the rows over the whole run: the sum where it is printed, else each stream's; none where the text ends before."""
    rows = [row for row in run.rows if row.stream == _SUM] or run.rows
    last: dict[str, _Row] = {}
    for row in rows:
        if row.start_s == 0 and (row.stream not in last or row.end_s >= last[row.stream].end_s):
            last[row.stream] = row
    ends = {row.stream: max(other.end_s for other in rows if other.stream == row.stream) for row in rows}
    return [row for row in last.values() if row.end_s >= ends[row.stream]] if last.keys() == ends.keys() else []


def _measurement(run: _Run, diagnostics: Sequence[Diagnostic]) -> Measurement:
    diagnostics = list(diagnostics)
    own = _over_whole_run(_Run(run.line, run.udp, [row for row in run.rows if row.total is None]))
    reported = [
        row for row in _over_whole_run(_Run(run.line, run.udp, [row for row in run.rows if row.total])) if row.lost is not None
    ]
    arrived = reported if run.udp else own
    streams = {row.stream for row in run.rows if row.stream != _SUM}
    if not arrived:
        why = "the server sent no report" if run.udp else "it was cut off before the line of the whole run"
        diagnostics.append(Diagnostic(f"what arrived is not known: {why}", run.line))
    numbers = dict[str, float | None].fromkeys(_NAMES)
    numbers["goodput"] = sum(row.rate_bit_s for row in arrived) if arrived else None
    numbers["sent_bytes"] = sum(row.size_bytes for row in own) if own else None
    numbers["time_taken"] = max((row.end_s for row in own or arrived), default=None)
    if run.udp:
        numbers["sent_datagrams"] = float(sum(run.sent)) if run.sent else None
        if arrived:
            total, lost = sum(row.total or 0 for row in arrived), sum(row.lost or 0 for row in arrived)
            numbers |= {"received_datagrams": total - lost, "lost_datagrams": lost, "loss": loss(lost, total)}
    facts: dict[str, Fact] = {"protocol": "udp" if run.udp else "tcp", "streams": max(len(streams), 1)}
    step = sum(row.step_bit_s for row in arrived)
    return Measurement(list(values(numbers, METRICS)), {}, (), diagnostics, facts, resolution={"goodput": step})


FORMATS = (
    Format("iperf2", "iperf 2's output from a client: text, or CSV (-y C)", METRICS, _recognises, _read, rate="goodput"),
)
