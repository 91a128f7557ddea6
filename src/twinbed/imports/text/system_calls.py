"""Traces of system calls that others made, as the instrument ``syscalls`` gives its own: values, tables and what is doubtful.

Tables: ``transitions`` and ``system_calls``.  Counts are of all programs in the trace together; the tables have each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.uncompressed import read_by_path
from twinbed.metrics.metric import Metric
from twinbed.metrics.syscalls import METRICS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.syscalls import Place, Program

if TYPE_CHECKING:
    import pyarrow as pa

_LINES = 200
"""A trace is recognised by so many of its first lines."""
_STOPS = "strace stops the program at every call"
STRACE_LINE = re.compile(
    rb"\s*(?:\[pid +\d+(?:<[^>]*>)?\] +|\d+(?:<[^>]*>)? +)?"
    rb"(?:\d\d:\d\d:\d\d(?:\.\d+)? +|\d+\.\d+ +|\d{9,} +)?(?:\[[ 0-9a-fx?]+\] +)*"
    rb"(?:[a-z_][a-z0-9_]*\(.*(?:\) *= (?:-?\d|0x|\?).*|<unfinished \.\.\.>)"
    rb"|<\.\.\. [a-z_][a-z0-9_]* resumed>.*|--- SIG[A-Z0-9]+ .*---|\+\+\+ (?:exited|killed|superseded) .*\+\+\+)\s*$"
)
"""A line of strace: perhaps a process and a time, then a call, the end of one, a signal or an exit."""
_TAIL_BYTES = 65536
_SUMMARY_BELOW = re.compile(
    rb"^[ \t]*% time\b[^\n]*\bsyscall\s*\n[- ]+\n(?:[ \d][^\n]*\n)+[- ]+\n[^\n]*\btotal\s*\Z", re.MULTILINE
)
"""What ``strace -C`` prints below a trace."""
_EPOCH_S = 1e8
"""A time below it is of the day (``-tt``), not since the epoch."""
_NUMBERED = frozenset({"perf_script", "trace_cmd"})
"""Kinds whose texts have numbers for calls, and do not say of which architecture."""
_NO_CALL = "not_a_call"
_TIMES = frozenset({"system_call_seconds", "wait_seconds"})
_AS_SHOULD_BE = frozenset(
    {
        "exit",
        "signal",
        "empty_line",
        "header_line",
        "other_event",
        "no_system_call",
        "strace_message",
        "drop",
        "lost_events_record",
    }
)
"""Why a line or record is no call, where nothing is wrong with it, or where it is counted as lost."""


def begins(with_: bytes, head: bytes) -> bool:
    """Whether a file begins so."""
    return head.startswith(with_)


@dataclass
class TraceFormat(Format):
    """A format whose files the core reads. ``kind`` is the core's name for it."""

    name: str
    summary: str
    kind: str
    recognised: Callable[[bytes], bool]
    timed: Callable[[bytes], bool] = partial(begins, b"")  # noqa: RUF009 - frozen all the same
    """Whether a file that begins so has the time of every call; where it has that of a few, their sum means nothing."""
    metrics: Sequence[Metric] = METRICS

    def recognises(self, head: bytes) -> bool:
        return self.recognised(head)

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        """``options``: ``architecture`` (x86_64, aarch64, i386) of the numbers in traces that do not say."""
        architecture = str(options.get("architecture", "x86_64"))
        ((programs, summary), below), damaged = read_by_path(
            source, "a trace", lambda path: (_core.system_calls(str(path), architecture=architecture), _lines_below(path))
        )
        if summary["kind"] != self.kind:
            raise FormatError(f"is a trace of another kind: {summary['kind'].replace('_', ' ')}")
        if not summary["calls"]:
            raise FormatError("has no system call")
        place = Place("", tuple(Program(*program) for program in programs), summary)
        timed = self.timed(source.head())
        values = [value if timed or value.metric not in _TIMES else replace(value, value=None) for value in place.values()]
        tables = {"transitions": place.transition_rows(), "system_calls": place.call_rows()}
        joined = {name: _joined(rows) for name, rows in tables.items()}
        cautions, diagnostics = list(_cautions(self, summary)), [*damaged, *_diagnostics(summary, below)]
        if self.kind in _NUMBERED and "architecture" not in options:
            diagnostics.append(
                Diagnostic(f"call numbers are read as those of {architecture}: architecture says otherwise", harmless=True)
            )
        facts = {"tracer": self.name, **({"call_numbers": architecture} if self.kind in _NUMBERED else {})}
        return [Measurement(values, joined, cautions, diagnostics, facts, _started_s(self, summary))]


def _started_s(of: TraceFormat, summary: _core.TraceSummary) -> float | None:
    """Other tracers' clocks count from boot."""
    first_s = (summary["first_ns"] or 0) / 1e9
    return first_s if of.kind == "strace" and first_s >= _EPOCH_S else None


def _joined(rows: Iterator[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(list(rows))


def _cautions(of: TraceFormat, summary: _core.TraceSummary) -> Iterator[Caution]:
    if lost := summary["lost_events"]:
        yield Caution(Kind.CALLS_LOST, f"{lost:,} events, by what the tracer says; {summary['calls']:,} calls were counted")
    if of.kind == "strace":
        yield Caution(Kind.SLOW_TRACING, _STOPS)


def _lines_below(path: Path) -> int:
    """The lines of a summary at the end of the trace."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        match = _SUMMARY_BELOW.search(file.read().replace(b"\r\n", b"\n"))
    return match[0].strip().count(b"\n") + 1 if match else 0


def _diagnostics(summary: _core.TraceSummary, below: int) -> Iterator[Diagnostic]:
    """``below``: lines that are no call and no flaw."""
    if summary["cut_off"]:
        yield Diagnostic(f"ends early: {summary['cut_off']}")
    for reason, number in summary["skipped"].items():
        count = number - below if reason == _NO_CALL else number
        if reason not in _AS_SHOULD_BE and count > 0:
            yield Diagnostic(f"{count:,} {reason.replace('_', ' ')}")


def some_line(pattern: re.Pattern[bytes], head: bytes) -> bool:
    """Whether one of the first lines is a tracer's."""
    return any(pattern.search(line) for line in head.split(b"\n", _LINES)[:_LINES])


def most_lines(pattern: re.Pattern[bytes], head: bytes) -> bool:
    """Whether at least half of the first lines are a tracer's: the program's own output may be between them."""
    lines = [line for line in head.split(b"\n", _LINES)[:_LINES] if line.strip()]
    return 2 * sum(1 for line in lines if pattern.match(line)) >= len(lines) > 0
