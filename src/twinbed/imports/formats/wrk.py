"""Formats ``wrk`` and ``wrk2``: what these load generators print, with ``--latency`` or without; several runs in one text.

The metrics are the workload's ``http``.  The goodput is null: wrk does not print the
document's size, and its rate of bytes counts headers.  Times are scaled by 1000 and 60, rates by 1000, sizes by 1024 (KB, MB,
GB), with two decimals.  It prints socket errors and answers other than 2xx and 3xx only where there were any.

wrk2 sends at a fixed rate and takes times from when a request was due, not from when it was sent.  The metrics
``scheduled_time_...`` have these times.  Its uncorrected times (``--u_latency``) are wrk's, ``total_time_...``.  With
``--latency`` mean and deviation are those of the detailed spectrum, in milliseconds with three decimals, which is the table
``latency_spectrum``. Requests of wrk2's calibration, the first ten seconds, count; their times do not.  DeathStarBench's has
the 99th percentile where wrk has the longest time: the heading of the column says which it is.
Source: units.c and wrk.c of wrk 4.1, and the README of wrk2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Fact, FormatError, Measurement
from twinbed.imports.text.figures import DECIMAL, MOST, SECONDS, number, parsed, plain, scaled, table, values
from twinbed.imports.text.reports import Layout, head_of, load_format
from twinbed.metrics.http import METRICS
from twinbed.metrics.metric import Layer, Metric
from twinbed.readers.http import request_cautions, wrk_numbers

if TYPE_CHECKING:
    import pyarrow as pa


LAYOUT = Layout(
    begins=re.compile(r"Running \S+ test @ "),
    result=re.compile(r"Requests/sec:"),
    again=re.compile(r"[0-9]+ threads and [0-9]+ connections|Thread Stats "),
    line=re.compile(r"Transfer/sec:"),
    last=re.compile(r"Transfer/sec:"),
)
RECOGNISED = re.compile(
    r"^[ \t]*(?:Running \S+ test @ .*\n[ \t]*[0-9]+ threads and [0-9]+ connections"
    r"|[0-9]+ threads and [0-9]+ connections\s*\n[ \t]*Thread (?:Stats|calibration))",
    re.MULTILINE,
)
SCHEDULED = re.compile(
    r"Thread calibration: |HdrHistogram|Detailed Percentile spectrum|Initialised [0-9]+ threads|Thread Stats +Avg +Stdev +99%"
)
"""Text that only wrk2 prints."""
_COLUMNS = re.compile(r"\s*Thread Stats +Avg +Stdev +(\S+) ")
_UNPRINTED = ("failed_requests", "failed_connect", "failed_receive", "failed_write", "failed_timeout", "non_2xx")


def _recognises(scheduled: bool, head: bytes) -> bool:
    text = head_of(head)
    return " connections" in text and RECOGNISED.search(text) is not None and (SCHEDULED.search(text) is not None) == scheduled


def _measurement(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    read = read_report(first, lines, cut)
    return Measurement(
        values=list(values(read.numbers, METRICS)),
        cautions=list(request_cautions(read.numbers, read.report["requests"])),
        diagnostics=read.diagnostics,
        facts=dict(facts(read.report)),
    )


@dataclass(frozen=True, slots=True)
class Read:
    """A report. ``diagnostics``: of lines that could not be read."""

    numbers: dict[str, float | None]
    """The workload's."""
    report: _core.WrkReport
    diagnostics: Sequence[Diagnostic]
    third: str
    """The heading of the third column of times; only where it is Max does ``report`` have a longest time."""
    third_s: float | None
    """The time in that column, in the row of latencies."""


def read_report(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Read:
    """Read the part of a report that wrk and wrk2 share. Raises FormatError."""
    if not any(LAYOUT.result.match(line.lstrip()) for line in lines):
        raise FormatError('is cut: a report of wrk ends with "Requests/sec:"', first)
    report, diagnostics = parsed(_core.wrk, lines, first)
    third = next((heading[1] for line in lines if (heading := _COLUMNS.match(line))), "Max")
    third_s = report["latency"]["max_s"] if report["latency"] else None
    if third != "Max" and report["latency"]:
        # DeathStarBench's wrk2 has the 99th percentile there.
        report = {**report, "latency": {**report["latency"], "max_s": None}}
    if report["requests"] is None:
        raise FormatError("has no count of requests", first)
    diagnostics = [*diagnostics, *cut]
    numbers = {name: number if _is_one(number) else None for name, number in wrk_numbers(report, None)}
    if diagnostics:
        # Only in a whole report is a count 0 that is not printed.
        printed = report["socket_errors"] is not None, report["non_2xx_or_3xx_responses"] is not None
        numbers |= {name: None for name in _UNPRINTED if not printed[name == "non_2xx"]}
    return Read(numbers, report, diagnostics, third, third_s)


def _is_one(number: float | None) -> bool:
    return number is not None and 0 <= number <= MOST


def facts(report: Mapping[str, object]) -> Iterator[tuple[str, Fact]]:
    names = (("url", "url"), ("threads", "threads"), ("connections", "connections"), ("duration_s", "requested_duration_s"))
    for name, key in names:
        setting = report[key]
        if isinstance(setting, str):
            yield name, setting
        elif isinstance(setting, int | float) and _is_one(setting):
            yield name, plain(setting)


PERCENTILES = {"50.000": "p50", "75.000": "p75", "90.000": "p90", "99.000": "p99", "99.900": "p99_9", "99.990": "p99_99"}
_DUE = "from when a request was due until the answer was complete"
WRK2_METRICS = (
    *METRICS,
    Metric("scheduled_time_mean", "s", Layer.APPLICATION, f"mean over requests of the time {_DUE}"),
    Metric("scheduled_time_sd", "s", Layer.APPLICATION, f"sd over requests of the time {_DUE}"),
    Metric("scheduled_time_max", "s", Layer.APPLICATION, f"max over requests of the time {_DUE}"),
    *(
        Metric(f"scheduled_time_{name}", "s", Layer.APPLICATION, f"time {_DUE}, within which {float(percent):g} % were served")
        for percent, name in PERCENTILES.items()
    ),
)
_SECTION = re.compile(r"\s*Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency")
_PERCENT = re.compile(rf"\s*({DECIMAL})%\s+({DECIMAL})(us|ms|s|m|h)\s*")
_ROW = re.compile(rf"\s*({DECIMAL})\s+([01]\.[0-9]+)\s+([0-9]+)\s+(?:{DECIMAL}|inf)\s*")
_MEAN = re.compile(rf"#\[Mean\s+=\s+({DECIMAL}), StdDeviation\s+=\s+({DECIMAL})\]\s*")
_MAX = re.compile(rf"#\[Max\s+=\s+({DECIMAL}), Total count\s+=\s+[0-9]+\]\s*")


def _scheduled_measurement(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    plain, sections = _apart(lines)
    read = read_report(first, plain, cut)
    numbers, report = read.numbers, read.report
    numbers = {name: value for name, value in numbers.items() if not name.startswith("total_time_")}
    # At a fixed rate it is no time of a request.
    numbers["time_per_request"] = None
    if not report["requests"]:
        sections = []
    latency = report["latency"] if report["requests"] else None
    # The line of threads has what is recorded, from when a request was due.
    numbers["scheduled_time_mean"] = latency["mean_s"] if latency else None
    numbers["scheduled_time_sd"] = latency["deviation_s"] if latency else None
    numbers["scheduled_time_max"] = latency["max_s"] if latency else None
    if latency and read.third != "Max":
        numbers["scheduled_time_p99"] = read.third_s if read.third == "99%" else None
    rows: list[tuple[bool, float, float, int]] = []
    names = {metric.name for metric in WRK2_METRICS}
    for recorded, section in sections:
        stem = "scheduled_time_" if recorded else "total_time_"
        times = {name: value for name, value in _times(stem, section) if value is not None}
        longest = times.pop(f"{stem}p100", None)
        if longest is not None and numbers.get(f"{stem}max") is None:
            times = {f"{stem}max": longest, **times}
        numbers |= {name: value for name, value in times.items() if name in names}
        rows += _spectrum(recorded, section)
    return Measurement(
        values=list(values(numbers, WRK2_METRICS)),
        tables={"latency_spectrum": _table(rows)} if rows else {},
        cautions=list(request_cautions(numbers, report["requests"])),
        diagnostics=read.diagnostics,
        facts=dict(facts(report)),
    )


def _apart(lines: Sequence[str]) -> tuple[list[str], list[tuple[bool, list[str]]]]:
    """Return the lines, emptied in sections of times; and these sections, with whether their times are from when it was due."""
    plain: list[str] = []
    sections: list[tuple[bool, list[str]]] = []
    inside = False
    for line in lines:
        if (begins := _SECTION.match(line)) is not None:
            sections.append((begins[1] == "Recorded", []))
            inside = True
        elif line.lstrip().startswith("-----") or (inside and " requests in " in line):
            inside = False
        if inside:
            sections[-1][1].append(line)
        plain.append("" if inside else line)
    return plain, sections


def _times(stem: str, lines: Sequence[str]) -> Iterator[tuple[str, float | None]]:
    for line in lines:
        if (match := _PERCENT.fullmatch(line)) is not None:
            name = "p100" if match[1] == "100.000" else PERCENTILES.get(match[1])
            if name is not None:
                yield f"{stem}{name}", scaled(match[2], SECONDS[match[3]])
        elif (match := _MEAN.fullmatch(line)) is not None:
            yield f"{stem}mean", scaled(match[1], 1e-3)
            yield f"{stem}sd", scaled(match[2], 1e-3)
        elif (match := _MAX.fullmatch(line)) is not None:
            yield f"{stem}max", scaled(match[1], 1e-3)


def _spectrum(recorded: bool, lines: Sequence[str]) -> Iterator[tuple[bool, float, float, int]]:
    for line in lines:
        match = _ROW.fullmatch(line)
        if match is None:
            continue
        time, share, count = number(match[1]), number(match[2]), number(match[3])
        if time is not None and share is not None and count is not None and share <= 1:
            yield recorded, time * 1e-3, share, int(count)


def _table(rows: Sequence[tuple[bool, float, float, int]]) -> pa.Table:
    """Return ``latency_spectrum``. ``scheduled``: from when due, not from when sent; ``share`` took ``seconds`` at most."""
    scheduled, seconds, share, requests = zip(*rows, strict=True)
    return table(
        {
            "host": ("string", [""] * len(rows)),
            "scheduled": ("bool", scheduled),
            "seconds": ("float64", seconds),
            "share": ("float64", share),
            "requests": ("int64", requests),
        }
    )


FORMATS = (
    load_format("wrk", "what wrk prints", METRICS, partial(_recognises, False), LAYOUT, _measurement),
    load_format(
        "wrk2",
        "what wrk2 prints: a fixed rate, and times from when a request was due",
        WRK2_METRICS,
        partial(_recognises, True),
        LAYOUT,
        _scheduled_measurement,
    ),
)
