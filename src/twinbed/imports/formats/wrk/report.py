"""Format ``wrk``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.load import MOST, parsed, plain, values, whole_lines
from twinbed.imports.text.reports import Layout, each_read, head_of, reports
from twinbed.metrics.http import METRICS, UNITS
from twinbed.metrics.metric import Metric
from twinbed.model.json import Document
from twinbed.readers.http import request_cautions, wrk_numbers

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
"""What only wrk2 prints."""
_COLUMNS = re.compile(r"\s*Thread Stats +Avg +Stdev +(\S+) ")
_UNPRINTED = ("failed_requests", "failed_connect", "failed_receive", "failed_write", "failed_timeout", "non_2xx")


class Wrk(Format):
    name = "wrk"
    summary = "what wrk prints"
    metrics: Sequence[Metric] = METRICS
    work = "requests"
    rate = "requests_per_second"

    def recognises(self, head: bytes) -> bool:
        text = head_of(head)
        return " connections" in text and RECOGNISED.search(text) is not None and SCHEDULED.search(text) is None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        lines, cut = whole_lines(source.text())
        return each_read(reports(lines, LAYOUT), _reading, cut)


def _reading(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    read = read_report(first, lines, cut)
    return Measurement(
        values=list(values(read.numbers, UNITS)),
        cautions=list(request_cautions(read.numbers, read.report["requests"])),
        diagnostics=read.diagnostics,
        facts=dict(facts(read.report)),
    )


@dataclass(frozen=True, slots=True)
class Read:
    """A report that was read. ``diagnostics``: of lines that were not."""

    numbers: dict[str, float | None]
    """The workload's."""
    report: _core.WrkReport
    diagnostics: Sequence[Diagnostic]
    third: str
    """The heading of the third column of times; only where it is Max does ``report`` have a longest time."""
    third_s: float | None
    """What stands there in the row of latencies."""


def read_report(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Read:
    """Raises FormatError."""
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
        # What is not printed is 0 in a whole report alone.
        printed = report["socket_errors"] is not None, report["non_2xx_or_3xx_responses"] is not None
        numbers |= {name: None for name in _UNPRINTED if not printed[name == "non_2xx"]}
    return Read(numbers, report, diagnostics, third, third_s)


def _is_one(number: float | None) -> bool:
    return number is not None and 0 <= number <= MOST


def facts(report: Mapping[str, object]) -> Iterator[tuple[str, str | int | float | bool]]:
    names = (("url", "url"), ("threads", "threads"), ("connections", "connections"), ("duration_s", "requested_duration_s"))
    for name, key in names:
        setting = report[key]
        if isinstance(setting, str):
            yield name, setting
        elif isinstance(setting, int | float) and _is_one(setting):
            yield name, plain(setting)
