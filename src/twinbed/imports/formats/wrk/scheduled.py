"""Format ``wrk2``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, Measurement, Source
from twinbed.imports.formats.wrk.report import LAYOUT, RECOGNISED, SCHEDULED, facts, read_report
from twinbed.imports.text.load import DECIMAL, number, values, whole_lines
from twinbed.imports.text.reports import each_read, head_of, reports
from twinbed.metrics.http import METRICS as OF_HTTP
from twinbed.metrics.metric import Layer, Metric
from twinbed.model.json import Document
from twinbed.readers.http import request_cautions

if TYPE_CHECKING:
    import pyarrow as pa

PERCENTILES = {"50.000": "p50", "75.000": "p75", "90.000": "p90", "99.000": "p99", "99.900": "p99_9", "99.990": "p99_99"}
_DUE = "from when a request was due until the answer was complete"
METRICS = (
    *OF_HTTP,
    Metric("scheduled_time_mean", "s", Layer.APPLICATION, f"mean over requests of the time {_DUE}"),
    Metric("scheduled_time_sd", "s", Layer.APPLICATION, f"sd over requests of the time {_DUE}"),
    Metric("scheduled_time_max", "s", Layer.APPLICATION, f"max over requests of the time {_DUE}"),
    *(
        Metric(f"scheduled_time_{name}", "s", Layer.APPLICATION, f"time {_DUE}, within which {float(percent):g} % were served")
        for percent, name in PERCENTILES.items()
    ),
)
UNITS = {metric.name: metric.unit for metric in METRICS}
_SECTION = re.compile(r"\s*Latency Distribution \(HdrHistogram - (Recorded|Uncorrected) Latency")
_PERCENT = re.compile(rf"\s*({DECIMAL})%\s+({DECIMAL})(us|ms|s|m|h)\s*")
_ROW = re.compile(rf"\s*({DECIMAL})\s+([01]\.[0-9]+)\s+([0-9]+)\s+(?:{DECIMAL}|inf)\s*")
_MEAN = re.compile(rf"#\[Mean\s+=\s+({DECIMAL}), StdDeviation\s+=\s+({DECIMAL})\]\s*")
_MAX = re.compile(rf"#\[Max\s+=\s+({DECIMAL}), Total count\s+=\s+[0-9]+\]\s*")
_SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Wrk2(Format):
    name = "wrk2"
    summary = "what wrk2 prints: a fixed rate, and times from when a request was due"
    metrics: Sequence[Metric] = METRICS
    work = "requests"
    rate = "requests_per_second"

    def recognises(self, head: bytes) -> bool:
        text = head_of(head)
        return " connections" in text and RECOGNISED.search(text) is not None and SCHEDULED.search(text) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        lines, cut = whole_lines(source.text())
        return each_read(reports(lines, LAYOUT), _reading, cut)


def _reading(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    plain, sections = _apart(lines)
    read = read_report(first, plain, cut)
    numbers, report = read.numbers, read.report
    for name in [name for name in numbers if name.startswith("total_time_")]:
        del numbers[name]
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
    for recorded, section in sections:
        stem = "scheduled_time_" if recorded else "total_time_"
        times = {name: one for name, one in _times(stem, section) if one is not None}
        longest = times.pop(f"{stem}p100", None)
        if longest is not None and numbers.get(f"{stem}max") is None:
            times = {f"{stem}max": longest, **times}
        numbers |= {name: one for name, one in times.items() if name in UNITS}
        rows += _spectrum(recorded, section)
    return Measurement(
        values=list(values(numbers, UNITS)),
        tables={"latency_spectrum": _table(rows)} if rows else {},
        cautions=list(request_cautions(numbers, report["requests"])),
        diagnostics=read.diagnostics,
        facts=dict(facts(report)),
    )


def _apart(lines: Sequence[str]) -> tuple[list[str], list[tuple[bool, list[str]]]]:
    """Lines without the sections of times, as empty ones; and these, with whether they are from when a request was due."""
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
            one = number(match[2])
            name = "p100" if match[1] == "100.000" else PERCENTILES.get(match[1])
            if name is not None and one is not None:
                yield f"{stem}{name}", one * _SCALES[match[3]]
        elif (match := _MEAN.fullmatch(line)) is not None:
            mean, deviation = number(match[1]), number(match[2])
            yield f"{stem}mean", None if mean is None else mean * 1e-3
            yield f"{stem}sd", None if deviation is None else deviation * 1e-3
        elif (match := _MAX.fullmatch(line)) is not None:
            longest = number(match[1])
            yield f"{stem}max", None if longest is None else longest * 1e-3


def _spectrum(recorded: bool, lines: Sequence[str]) -> Iterator[tuple[bool, float, float, int]]:
    for line in lines:
        match = _ROW.fullmatch(line)
        if match is None:
            continue
        time, share, count = number(match[1]), number(match[2]), number(match[3])
        if time is not None and share is not None and count is not None and share <= 1:
            yield recorded, time * 1e-3, share, int(count)


def _table(rows: Sequence[tuple[bool, float, float, int]]) -> pa.Table:
    """``scheduled``: from when due, not from when sent; ``share`` of the requests took ``seconds`` at most."""
    import pyarrow as pa

    scheduled, seconds, share, count = zip(*rows, strict=True)
    return pa.table(
        {
            "host": pa.array([""] * len(rows), pa.string()),
            "scheduled": pa.array(scheduled, pa.bool_()),
            "seconds": pa.array(seconds, pa.float64()),
            "share": pa.array(share, pa.float64()),
            "requests": pa.array(count, pa.int64()),
        }
    )
