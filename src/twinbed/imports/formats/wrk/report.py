"""Format ``wrk``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.load import MOST, parsed, plain, values, whole_lines
from twinbed.imports.text.reports import Layout, each_read, head_of, reports
from twinbed.metrics.http import METRICS, UNITS
from twinbed.metrics.metric import Metric
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

    def read(self, source: Source, options: Mapping[str, Any]) -> Sequence[Measurement]:
        lines, cut = whole_lines(source.text())
        return each_read(reports(lines, LAYOUT), _reading, cut)


def _reading(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    numbers, report, diagnostics = read_report(first, lines, cut)
    return Measurement(
        values=list(values(numbers, UNITS)),
        cautions=list(request_cautions(numbers, report["requests"])),
        diagnostics=diagnostics,
        facts=dict(facts(report)),
    )


def read_report(
    first: int, lines: Sequence[str], cut: Sequence[Diagnostic]
) -> tuple[dict[str, float | None], Mapping[str, Any], Sequence[Diagnostic]]:
    """The workload's numbers, and the report. Raises FormatError."""
    if not any(LAYOUT.result.match(line.lstrip()) for line in lines):
        raise FormatError('is cut: a report of wrk ends with "Requests/sec:"', first)
    said, diagnostics = parsed(_core.wrk, lines, first)
    report: Mapping[str, Any] = said
    third = next((found[1] for line in lines if (found := _COLUMNS.match(line))), "Max")
    if third != "Max" and report["latency"]:
        # DeathStarBench's wrk2 has the 99th percentile there.
        p99 = report["latency"]["max_s"] if third == "99%" else None
        report = {**report, "latency": {**report["latency"], "max_s": None, "p99_s": p99}}
    if report["requests"] is None:
        raise FormatError("has no count of requests", first)
    diagnostics = [*diagnostics, *cut]
    numbers = {name: number if _is_one(number) else None for name, number in wrk_numbers(cast("_core.WrkReport", report), None)}
    if diagnostics:
        # What is not printed is 0 in a whole report alone.
        printed = report["socket_errors"] is not None, report["non_2xx_or_3xx_responses"] is not None
        numbers |= {name: None for name in _UNPRINTED if not printed[name == "non_2xx"]}
    return numbers, report, diagnostics


def _is_one(number: float | None) -> bool:
    return number is not None and 0 <= number <= MOST


def facts(report: Mapping[str, Any]) -> Iterator[tuple[str, str | int | float | bool]]:
    names = (("url", "url"), ("threads", "threads"), ("connections", "connections"), ("duration_s", "requested_duration_s"))
    for name, key in names:
        found = report[key]
        if isinstance(found, str):
            yield name, found
        elif _is_one(found):
            yield name, plain(found)
