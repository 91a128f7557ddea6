"""Format ``hey``: what this load generator prints; several runs in one text.

The metrics are the workload's ``http``.  Times have four decimals of a second.  hey's rate counts requests that failed: where
some did, the rate is multiplied by the share that did not.  Goodput is over the time taken or, where it has more digits, the
time of the requests by their rate.  Data are documents by their Content-Length, without headers.  hey prints ``0% in 0.0000
secs`` for a percentile that was not reached.

Not read: the histogram, ``DNS-lookup``, ``req write``, ``resp read``.  The fastest and slowest of ``DNS+dialup`` are those of
whole requests, and are not read either.  hey keeps a million results at most and counts no statuses after that: then the
requests are null.
Source: hey's print.go and report.go, and what hey 0.1.4 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from twinbed.contracts.format import Diagnostic, FormatError, Measurement
from twinbed.imports.text.figures import DECIMAL, finer_seconds, number, unread, values
from twinbed.imports.text.reports import Layout, holding, load_format
from twinbed.metrics.http import METRICS as OF_HTTP
from twinbed.metrics.metric import Layer, Metric
from twinbed.readers.http import request_cautions

PERCENTILES = ("10", "25", "50", "75", "90", "95", "99")
METRICS = (
    *OF_HTTP,
    Metric("total_time_p10", "s", Layer.APPLICATION, "time within which 10 % of the requests were served"),
    Metric("total_time_p25", "s", Layer.APPLICATION, "time within which 25 % of the requests were served"),
)
MOST_RESULTS = 1_000_000
_STEP_S = 0.00005
_LAYOUT = Layout(
    begins=re.compile(r"Summary:\s*$"),
    result=re.compile(r"Requests/sec:\s"),
    again=re.compile(r"(?:Total|Slowest|Fastest|Average):\s"),
    line=re.compile(
        rf"(?:Total data|Size/request):\s|{DECIMAL} \[[0-9]+\]\s*\||[0-9]+%+ in |[\w+-]+(?: \w+)?:\s+-?{DECIMAL} secs"
        r"|\[[0-9]+\]\s"
        r"|(?:Response time histogram|Latency distribution|Details \(average, fastest, slowest\)|Status code distribution"
        r"|Error distribution):"
    ),
)
_RECOGNISED = re.compile(r"^[ \t]*Summary:[ \t]*\n\s+Total:\s+.* secs[ \t]*\n\s+Slowest:\s", re.MULTILINE)
_LABELLED = re.compile(
    rf"\s+(Total|Slowest|Fastest|Average|Requests/sec|Total data|Size/request):\s+({DECIMAL}| *NaN)( secs| bytes)?\s*"
)
_UNIT = {"Requests/sec": None, "Total data": " bytes", "Size/request": " bytes"}
_PERCENT = re.compile(rf"\s+([0-9]+)%+ in ({DECIMAL}) secs\s*")
_DETAIL = re.compile(rf"\s+([\w+ -]+):\s+((?:-?{DECIMAL}| *NaN) secs(?:, -?{DECIMAL} secs){{2}})\s*")
_COUNT = re.compile(r"\s+\[([0-9]+)\]\s+(?:([0-9]+) responses\s*|(.*))")
_BAR = re.compile(rf"\s+{DECIMAL} \[[0-9]+\]\s*\|.*")
_HEADINGS = (
    "Summary:",
    "Response time histogram:",
    "Latency distribution:",
    "Details (average, fastest, slowest):",
    "Status code distribution:",
    "Error distribution:",
)


class _Report:
    """The numbers of a run's lines, by their labels."""

    def __init__(self) -> None:
        self.summary: dict[str, float | None] = {}
        self.percentiles: dict[str, float | None] = {}
        self.details: dict[str, list[float | None]] = {}
        self.statuses: dict[str, int] = {}
        self.errors: dict[str, int] = {}
        self.diagnostics: list[Diagnostic] = []
        self._section = ""

    def take(self, line: str, at: int) -> None:
        plain = line.strip()
        if plain in _HEADINGS:
            self._section = plain
        elif not plain or _BAR.fullmatch(line):
            return
        elif not self._known(line):
            self.diagnostics.append(unread(line, at))

    def _known(self, line: str) -> bool:
        if (match := _LABELLED.fullmatch(line)) is not None and self._section == "Summary:":
            label, unit = match[1], match[3]
            if unit != _UNIT.get(label, " secs"):
                return False
            self.summary[label] = number(match[2])
        elif (match := _PERCENT.fullmatch(line)) is not None:
            if match[1] != "0":
                self.percentiles[match[1]] = number(match[2])
        elif (match := _DETAIL.fullmatch(line)) is not None:
            self.details[match[1].strip()] = [number(part.removesuffix(" secs")) for part in match[2].split(", ")]
        elif (match := _COUNT.fullmatch(line)) is not None:
            counts, key, count = (
                (self.statuses, match[1], match[2]) if match[2] is not None else (self.errors, match[3], match[1])
            )
            requests = number(count)
            if requests is None or (match[2] is None and self._section != "Error distribution:"):
                return False
            counts[key] = counts.get(key, 0) + int(requests)
        else:
            return False
        return True


def _measurement(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    report = _Report()
    for index, line in enumerate(lines):
        report.take(line, first + index)
    if "Requests/sec" not in report.summary:
        raise FormatError("has no line Requests/sec of a summary", first)
    report.diagnostics += cut
    numbers = dict(_numbers(report))
    answered, failed = numbers["requests"], numbers["failed_requests"]
    cautions = list(request_cautions(numbers, None if answered is None or failed is None else answered + failed))
    times = [name for name in numbers if "_time_" in name]
    return Measurement(
        values=list(values(numbers, METRICS)),
        cautions=cautions,
        diagnostics=report.diagnostics,
        resolution=dict.fromkeys([*times, "time_taken"], _STEP_S),
    )


def _numbers(report: _Report) -> Iterator[tuple[str, float | None]]:
    summary = report.summary
    taken, rate = summary.get("Total"), summary.get("Requests/sec")
    answered, failed = sum(report.statuses.values()), _failed(report)
    completed = answered if answered < MOST_RESULTS and failed is not None else None
    if answered >= MOST_RESULTS:
        report.diagnostics.append(Diagnostic(f"hey counts the statuses of at most {MOST_RESULTS} requests"))
    tried = completed + failed if completed is not None and failed is not None else None
    yield "requests", completed
    yield "requests_per_second", rate * completed / tried if rate is not None and completed and tried else None
    data = summary.get("Total data")
    seconds = finer_seconds(taken or 0.0, _STEP_S, tried or 0, rate or 0.0, _STEP_S)
    yield "goodput", 8 * data / seconds if data is not None and seconds and completed else None
    yield "time_taken", taken
    yield "document_transferred_bytes", data
    yield "failed_requests", failed
    whole = failed is not None and not report.diagnostics
    yield "non_2xx", sum(n for status, n in report.statuses.items() if not 200 <= int(status) < 300) if whole else None
    for moment, label in (("min", "Fastest"), ("mean", "Average"), ("max", "Slowest")):
        yield f"total_time_{moment}", summary.get(label) if answered else None
    for percent in PERCENTILES:
        yield f"total_time_p{percent}", report.percentiles.get(percent)
    yield "total_time_median", report.percentiles.get("50")
    yield "connect_time_mean", report.details.get("DNS+dialup", [None])[0] if answered else None
    waits = report.details.get("resp wait", [None] * 3) if answered else [None] * 3
    for moment, wait in zip(("mean", "min", "max"), waits, strict=True):
        yield f"waiting_time_{moment}", wait


def _failed(report: _Report) -> int | None:
    """Return the number of errors; where none are printed, 0 if the statuses account for the rate over the time taken."""
    if report.errors:
        return sum(report.errors.values())
    taken, rate = report.summary.get("Total"), report.summary.get("Requests/sec")
    answered = sum(report.statuses.values())
    if taken is None or rate is None:
        return None
    rounding = rate * _STEP_S + taken * _STEP_S + 0.5
    if answered >= MOST_RESULTS or abs(rate * taken - answered) <= rounding:
        return 0
    report.diagnostics.append(
        Diagnostic(f"{rate * taken:.0f} requests by rate and time, but {answered} statuses and no errors")
    )
    return None


FORMATS = (load_format("hey", "what hey prints", METRICS, holding(_RECOGNISED, "Requests/sec:"), _LAYOUT, _measurement),)
