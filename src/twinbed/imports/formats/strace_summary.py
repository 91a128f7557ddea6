"""Format ``strace-summary``: the table that ``strace -c`` prints at the end, with the columns that it has (``-U``).

Gives calls by kind and errors, and the table ``strace_summary`` (call, calls, errors, seconds, share_percent).  What its
seconds are is not in the file: CPU time in the kernel, or with ``-w`` time that passed.  So they are no metric.  Several
summaries in a file are several measurements.  A total that the rows contradict is a caution.  Where rows are cut off or cannot
be read, any kind may have had calls in them, so no kind has a number; all calls together are what the total says.

What strace leaves blank (errors where there were none, in older versions the time of a call in the total) is found by where
the ruler has its columns.

Source: strace(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import count, real
from twinbed.imports.text.system_calls import STRACE_LINE, most_lines
from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.syscalls import KINDS, METRICS, kind_of, unit
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = ("% time", "total %", "seconds", "total time", "usecs/call", "avg time", "min time", "shortest", "max time", "longest")
_HEAD = re.compile(rf"\s*(?:(?:{'|'.join(_NAMES)}|calls|errors|syscall)\s+)*(?:{'|'.join(_NAMES)}|calls|errors|syscall)\s*")
_COLUMN = re.compile("|".join((*_NAMES, "calls", "errors", "syscall")))
_RULER = re.compile(r"\s*-{4,}(?: -{4,})+\s*")
_IS_TRACE = partial(most_lines, STRACE_LINE)
_CALL = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(slots=True)
class _Summary:
    """One table. ``rows``: call -> (calls, errors, seconds, share); ``columns`` are the names of its heading.

    ``unread``: whether rows are missing that could not be read.
    """

    columns: Sequence[str]
    spans: Sequence[tuple[int, int]] = ()
    """The span of each column on a line; nothing where the ruler does not tell."""
    rows: dict[str, tuple[int, int, float | None, float | None]] = field(default_factory=dict)
    total: tuple[int, int] | None = None
    unread: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)


class StraceSummary(Format):
    """The format."""

    name = "strace-summary"
    summary = "system calls counted by strace -c"
    metrics: Sequence[Metric] = tuple(
        metric for metric in METRICS if metric.name.endswith("_calls") or metric.name in ("system_call_errors", "system_calls")
    )

    def recognises(self, head: bytes) -> bool:
        if b"syscall" not in head or b"----" not in head:
            return False
        lines = [line for line in head.decode("latin-1").splitlines() if line.strip()]
        tables = (_is_head(line) and _RULER.fullmatch(ruler) for line, ruler in pairwise(lines))
        return any(tables) and not _IS_TRACE(head)

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        summaries = list(_summaries(source.text()))
        if not any(each.rows for each in summaries):
            raise FormatError("has no summary of strace -c")
        return [_reading(each) for each in summaries if each.rows]


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
            current.diagnostics.append(Diagnostic("ends before its total: how many calls there were of any kind is not known"))
        yield current


def _take(summary: _Summary, line: str, number: int) -> None:
    """A row, or the total below the rows."""
    words = line.split()
    columns = _filled(summary, line, len(words))
    given = dict(zip(columns, words, strict=False))
    calls = count(given.get("calls", ""))
    errors = count(given.get("errors", "0"))
    name = given.get("syscall", "")
    if len(words) != len(columns) or calls is None or errors is None or not _CALL.fullmatch(name):
        summary.diagnostics.append(Diagnostic(f"is no row of a summary: {line.strip()[:80]!r}", number))
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
    """The columns of a line of so many words."""
    columns = list(summary.columns)
    if words < len(columns) == len(summary.spans):
        names = [name for name, (start, end) in zip(columns, summary.spans, strict=True) if line[start:end].strip()]
        if len(names) == words:
            return names
    if words == len(columns) - 1 and "errors" in columns:
        columns.remove("errors")  # left blank where there were none
    return columns


def _reading(summary: _Summary) -> Measurement:
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
    cautions = [Caution(Kind.SLOW_TRACING, "strace stops the program at every call")]
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
    import pyarrow as pa

    columns = list(zip(*summary.rows.values(), strict=True))
    types = (("calls", pa.float64()), ("errors", pa.float64()), ("seconds", pa.float64()), ("share_percent", pa.float64()))
    names = {"call": pa.array(list(summary.rows), pa.string())}
    return pa.table(names | {name: pa.array(list(column), kind) for (name, kind), column in zip(types, columns, strict=True)})


strace_summary = StraceSummary()
