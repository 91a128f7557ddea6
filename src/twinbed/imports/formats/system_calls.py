"""Traces of system calls that others made, and the counts of ``strace -c``.

A trace gives the values and tables (``transitions``, ``system_calls``) of the instrument ``syscalls``, and cautions.  Counts
are of all programs in the trace together; the tables have each.

* ``perf-data``: what ``perf record -e 'raw_syscalls:*'`` writes, into a file or a pipe, compressed (``-z``) too.  A recording
  without those events has no system call, and is refused.  (Linux, tools/perf/Documentation/perf.data-file-format.txt.)
* ``perf-script``: what ``perf script`` prints of a recording of ``raw_syscalls``.
* ``trace-cmd``: what ``trace-cmd report`` prints of ``raw_syscalls``, or a trace file of tracefs itself.
* ``sysdig``: what ``sysdig -r`` prints in its default format, events in and out.
* ``strace``: calls one by one, with ``-f``, ``-ff``, ``-t`` to ``-ttt``, ``-T``, ``-Y``.  Time in calls needs ``-T``; without
  it the time is null.  A file of ``-ff`` is one process; ``strace-log-merge`` makes one trace of several.  strace prints errors
  as -1 and a name.  The summary below a trace (``-C``) is left out: it counts the same calls.
* ``strace-summary``: the table that ``strace -c`` prints at the end, with the columns that it has (``-U``).  It gives calls by
  kind and errors, and the table ``strace_summary`` (call, calls, errors, seconds, share_percent).  The file does not say
  whether its seconds are CPU time in the kernel or, with ``-w``, time that passed.  So they are no metric.  Several summaries
  in a file are several measurements.  A total that the rows contradict is a caution.  Where rows are cut off or cannot be
  read, any kind may have had calls in them, so no kind has a number; the number of all calls is the total's.  strace leaves
  cells blank (errors where there were none, in older versions the time of a call in the total): the ruler's columns say which.

Sources: perf-script(1), trace-cmd-report(1), Documentation/trace/ftrace.rst of Linux, sysdig(8), strace(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.counter_deltas import joined
from twinbed.imports.text.figures import count, real, table, unread
from twinbed.imports.text.source import read_by_path
from twinbed.metrics.metric import Value
from twinbed.metrics.syscalls import KINDS, METRICS, kind_of, unit
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
"""The summary that ``strace -C`` prints below a trace."""
_EPOCH_S = 1e8
"""A time below it is of the day (``-tt``), not since the epoch."""
_NUMBERED = frozenset({"perf_script", "trace_cmd"})
"""Kinds whose texts have numbers for calls, and not the architecture."""
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
"""Reasons for which a line or record is no call, though nothing is wrong with it, or it is counted as lost."""


def _is_timed(head: bytes) -> bool:
    """Return whether strace gave the time of calls. A sum of the times of a few calls would mean nothing."""
    return _WITH_TIME.search(head) is not None


def _read_trace(
    tracer: str, kind: str, timed: Callable[[bytes], bool] | None, source: Source, options: Document
) -> Sequence[Measurement]:
    """Read a trace by the core. ``kind`` is the core's name for it; ``timed``: None where every call has its time.

    ``options``: ``architecture`` (x86_64, aarch64, i386) of the numbers in traces that do not say.
    """
    architecture = str(options.get("architecture", "x86_64"))
    ((programs, summary), below), damaged = read_by_path(
        source, "a trace", lambda path: (_core.system_calls(str(path), architecture=architecture), _lines_below(path))
    )
    if summary["kind"] != kind:
        raise FormatError(f"is a trace of another kind: {summary['kind'].replace('_', ' ')}")
    if not summary["calls"]:
        raise FormatError("has no system call")
    place = Place("", tuple(Program(*program) for program in programs), summary)
    has_times = timed is None or timed(source.head())
    values = [value if has_times or value.metric not in _TIMES else replace(value, value=None) for value in place.values()]
    tables = {"transitions": joined(list(place.transition_rows())), "system_calls": joined(list(place.call_rows()))}
    diagnostics = [*damaged, *_diagnostics(summary, below)]
    if kind in _NUMBERED and "architecture" not in options:
        text = f"call numbers are read as those of {architecture}; set architecture if that is wrong"
        diagnostics.append(Diagnostic(text, harmless=True))
    facts = {"tracer": tracer, **({"call_numbers": architecture} if kind in _NUMBERED else {})}
    cautions = list(_cautions(kind, summary))
    return [Measurement(values, tables, cautions, diagnostics, facts, _started_s(kind, summary))]


def _started_s(kind: str, summary: _core.TraceSummary) -> float | None:
    """Return the start by strace. Other tracers' clocks count from boot."""
    first_s = (summary["first_ns"] or 0) / 1e9
    return first_s if kind == "strace" and first_s >= _EPOCH_S else None


def _cautions(kind: str, summary: _core.TraceSummary) -> Iterator[Caution]:
    if lost := summary["lost_events"]:
        yield Caution(Kind.CALLS_LOST, f"{lost:,} events, by the tracer's own count; {summary['calls']:,} calls were counted")
    if kind == "strace":
        yield Caution(Kind.SLOW_TRACING, _STOPS)


def _lines_below(path: Path) -> int:
    """Return the number of lines of a summary at the end of the trace."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        match = _SUMMARY_BELOW.search(file.read().replace(b"\r\n", b"\n"))
    return match[0].strip().count(b"\n") + 1 if match else 0


def _diagnostics(summary: _core.TraceSummary, below: int) -> Iterator[Diagnostic]:
    """Yield the diagnostics of a trace. ``below``: lines that are no call and nothing wrong."""
    if summary["cut_off"]:
        yield Diagnostic(f"ends early: {summary['cut_off']}")
    for reason, number in summary["skipped"].items():
        count = number - below if reason == _NO_CALL else number
        if reason not in _AS_SHOULD_BE and count > 0:
            yield Diagnostic(f"{count:,} {reason.replace('_', ' ')}")


def _some_line(pattern: re.Pattern[bytes], head: bytes) -> bool:
    """Return whether one of the first lines is a tracer's."""
    return any(pattern.search(line) for line in head.split(b"\n", _LINES)[:_LINES])


def _is_strace(head: bytes) -> bool:
    """Return whether at least half of the first lines are strace's: the program's own output may be between them."""
    lines = [line for line in head.split(b"\n", _LINES)[:_LINES] if line.strip()]
    return 2 * sum(1 for line in lines if STRACE_LINE.match(line)) >= len(lines) > 0


_PERF_SCRIPT_LINE = re.compile(rb"\s(?:\[\d+\]\s+)?\d+\.\d+:\s+raw_syscalls:sys_(?:enter|exit):\s+NR ")
_TRACE_CMD_LINE = re.compile(rb"-\d+\s.{0,80}?\s\d+\.\d+:\s+sys_(?:enter|exit):\s+NR ")
_SYSDIG_LINE = re.compile(rb"^\s*\d+ (?:\d\d:\d\d:\d\d\.\d+|\d+\.\d+) \d+ .{1,128}\([0-9.:]+\) [<>] [a-z]")
_WITH_TIME = re.compile(rb"<\d+\.\d+>\s*$", re.MULTILINE)
_NAMES = ("% time", "total %", "seconds", "total time", "usecs/call", "avg time", "min time", "shortest", "max time", "longest")
_HEAD = re.compile(rf"\s*(?:(?:{'|'.join(_NAMES)}|calls|errors|syscall)\s+)*(?:{'|'.join(_NAMES)}|calls|errors|syscall)\s*")
_COLUMN = re.compile("|".join((*_NAMES, "calls", "errors", "syscall")))
_RULER = re.compile(r"\s*-{4,}(?: -{4,})+\s*")
_CALL = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(slots=True)
class _Summary:
    """One table. ``rows``: call -> (calls, errors, seconds, share); ``columns`` are the names of its heading.

    ``unread``: whether rows are missing that could not be read.
    """

    columns: Sequence[str]
    spans: Sequence[tuple[int, int]] = ()
    """The span of each column on a line; nothing without a ruler."""
    rows: dict[str, tuple[int, int, float | None, float | None]] = field(default_factory=dict)
    total: tuple[int, int] | None = None
    unread: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)


def _recognises_summary(head: bytes) -> bool:
    if b"syscall" not in head or b"----" not in head:
        return False
    lines = [line for line in head.decode("latin-1").splitlines() if line.strip()]
    tables = (_is_head(line) and _RULER.fullmatch(ruler) for line, ruler in pairwise(lines))
    return any(tables) and not _is_strace(head)


def _read_summary(source: Source, options: Document) -> Sequence[Measurement]:
    summaries = list(_summaries(source.text()))
    if not any(summary.rows for summary in summaries):
        raise FormatError("has no summary of strace -c")
    return [_measurement(summary) for summary in summaries if summary.rows]


def _is_head(line: str) -> bool:
    return _HEAD.fullmatch(line) is not None and {"calls", "syscall"} <= set(_COLUMN.findall(line))


def _summaries(text: str) -> Iterator[_Summary]:
    current: _Summary | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if _is_head(line):
            if current:
                yield current
            current = _Summary(_COLUMN.findall(line))
        elif current and _RULER.fullmatch(line):
            current.spans = [rule.span() for rule in re.finditer("-+", line)]
        elif current and current.total is None and line.strip():
            _take(current, line, number)
    if current:
        if current.total is None:
            current.diagnostics.append(Diagnostic("ends before its total, so the number of calls of any kind is not known"))
        yield current


def _take(summary: _Summary, line: str, number: int) -> None:
    """Take in a row, or the total below the rows."""
    words = line.split()
    columns = _filled(summary, line, len(words))
    given = dict(zip(columns, words, strict=False))
    calls = count(given.get("calls", ""))
    errors = count(given.get("errors", "0"))
    name = given.get("syscall", "")
    if len(words) != len(columns) or calls is None or errors is None or not _CALL.fullmatch(name):
        summary.diagnostics.append(unread(line, number, "is not a row of a summary"))
        summary.unread = True
    elif name == "total":
        summary.total = (calls, errors)
    elif name in summary.rows:
        summary.diagnostics.append(Diagnostic(f"has {name} a second time", number))
        summary.unread = True
    else:
        seconds = real(given.get("seconds", given.get("total time", "")))
        summary.rows[name] = (calls, errors, seconds, real(given.get("% time", given.get("total %", ""))))


def _filled(summary: _Summary, line: str, words: int) -> list[str]:
    """Return the columns of a line of so many words."""
    columns = list(summary.columns)
    if words < len(columns) == len(summary.spans):
        names = [name for name, (start, end) in zip(columns, summary.spans, strict=True) if line[start:end].strip()]
        if len(names) == words:
            return names
    if words == len(columns) - 1 and "errors" in columns:
        columns.remove("errors")  # left blank where there were none
    return columns


def _measurement(summary: _Summary) -> Measurement:
    counts = dict.fromkeys((*KINDS, "other"), 0)
    for name, (calls, *_) in summary.rows.items():
        counts[kind_of(name)] += calls
    whole, errors = sum(counts.values()), sum(row[1] for row in summary.rows.values())
    has_errors = "errors" in summary.columns
    numbers: dict[str, int | None] = {"system_calls": whole, **{f"{kind}_calls": count for kind, count in counts.items()}}
    numbers["system_call_errors"] = errors if has_errors else None
    if summary.total is None or summary.unread:
        numbers = dict.fromkeys(numbers)
        if summary.total:
            numbers["system_calls"], numbers["system_call_errors"] = summary.total[0], summary.total[1] if has_errors else None
    values = [Value(name, number, unit(name)) for name, number in numbers.items()]
    cautions = [Caution(Kind.SLOW_TRACING, _STOPS)]
    cautions += _contradictions(summary, whole, errors if has_errors else None)
    return Measurement(values, {"strace_summary": _table(summary)}, cautions, summary.diagnostics, {"tracer": "strace"})


def _contradictions(summary: _Summary, calls: int, errors: int | None) -> Iterator[Caution]:
    if summary.total is None:
        return
    total_calls, total_errors = summary.total
    if calls != total_calls:
        yield Caution(Kind.CONTRADICTED, f"the rows have {calls} calls, the total says {total_calls}")
    if errors is not None and errors != total_errors:
        yield Caution(Kind.CONTRADICTED, f"the rows have {errors} errors, the total says {total_errors}")


def _table(summary: _Summary) -> pa.Table:
    calls, errors, seconds, shares = zip(*summary.rows.values(), strict=True)
    columns = {"calls": calls, "errors": errors, "seconds": seconds, "share_percent": shares}
    return table({"call": ("string", summary.rows), **{name: ("float64", cells) for name, cells in columns.items()}})


def _trace(
    name: str, summary: str, recognises: Callable[[bytes], object], timed: Callable[[bytes], bool] | None = None
) -> Format:
    return Format(name, summary, METRICS, recognises, partial(_read_trace, name, name.replace("-", "_"), timed))


FORMATS = (
    _trace("strace", "system calls one by one, as strace prints them", _is_strace, _is_timed),
    Format(
        "strace-summary",
        "system calls counted by strace -c",
        tuple(
            metric
            for metric in METRICS
            if metric.name.endswith("_calls") or metric.name in ("system_call_errors", "system_calls")
        ),
        _recognises_summary,
        _read_summary,
    ),
    _trace("perf-data", "system calls recorded by perf record", re.compile(b"PERFILE2").match),
    _trace("perf-script", "system calls that perf script prints", partial(_some_line, _PERF_SCRIPT_LINE)),
    _trace("trace-cmd", "system calls that trace-cmd or tracefs prints", partial(_some_line, _TRACE_CMD_LINE)),
    _trace("sysdig", "system calls that sysdig prints", partial(_some_line, _SYSDIG_LINE)),
)
