"""Format ``ab-text``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Format, Measurement, Source
from twinbed.imports.text.load import MOST, SHOWN, parsed, values, whole_lines
from twinbed.imports.text.reports import Layout, each_read, head_of, reports
from twinbed.metrics.http import METRICS, PERCENTILES, STAGES, UNITS
from twinbed.metrics.metric import Metric
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.http import ab_numbers, request_cautions

_LAYOUT = Layout(
    begins=re.compile(r"This is ApacheBench, Version "),
    result=re.compile(r"Requests per second: |Total of [0-9]+ requests completed"),
    again=re.compile(
        r"(?:Benchmarking .*\(be patient\)|(?:Server (?:Software|Hostname|Port)|Document (?:Path|Length)|Concurrency Level"
        r"|Time taken for tests|Complete requests):)"
    ),
    line=re.compile(
        r"(?:Time per request|Transfer rate|Connect|Processing|Waiting|Total): +[0-9]|(?:WARNING|ERROR): The median and mean "
        r"|[0-9]+%\s+[0-9]+(?: \(longest request\))?\s*$|[0-9.]+ kb/s (?:sent|total)|These results are|deviation apart"
    ),
)
_FIELD = re.compile(
    r"^[ \t]*(?:This is ApacheBench, Version |Concurrency Level:  |Requests per second:  .*\[#/sec\])", re.MULTILINE
)
_STEP_S = 0.0005
"""Times are rounded to a millisecond."""
_UNPRINTED = {"failed_write": "write_errors", "non_2xx": "non_2xx_responses"}
"""What ab leaves out where it is 0."""
_ENDS = ("Complete requests:", "Total transferred:")
"""The lines between which it would be."""


class AbText(Format):
    name = "ab-text"
    summary = "what ApacheBench (ab) prints"
    metrics: Sequence[Metric] = METRICS
    work = "requests"
    rate = "requests_per_second"

    def recognises(self, head: bytes) -> bool:
        text = head_of(head)
        return ("ApacheBench" in text or "[#/sec]" in text) and _FIELD.search(text) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        lines, cut = whole_lines(source.text())
        return each_read(reports(lines, _LAYOUT), _reading, cut)


def _reading(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    """``cut``: what is wrong behind its last line."""
    report, diagnostics = parsed(_core.ab, lines, first)
    printed: Mapping[str, object] = report
    diagnostics = [*diagnostics, *(_others(first, lines, report["messages"])), *cut]
    counted = _between(first, lines)
    done = report["complete_requests"]
    numbers = dict(ab_numbers(report))
    times = dict(report["percentiles"]) if done and numbers["requests"] else {}
    numbers |= {f"total_time_p{percent}": times.get(percent) for percent in PERCENTILES}
    if report["transferred_bytes"] is None or any(
        diagnostic.line is None or diagnostic.line in counted for diagnostic in diagnostics
    ):
        for name, key in _UNPRINTED.items():
            if printed[key] is None:
                numbers[name] = None
    numbers = {name: None if number is not None and not 0 <= number <= MOST else number for name, number in numbers.items()}
    cautions = [*request_cautions(numbers, done)]
    if done is None:
        made = report["aborted_after_requests"]
        detail = f"ab gave up{'' if made is None else f' after {made} requests'}: {'; '.join(report['messages'][:3])}"
        cautions.insert(0, Caution(Kind.FAILED_REQUESTS, detail))
    return Measurement(
        values=list(values(numbers, UNITS)),
        cautions=cautions,
        diagnostics=diagnostics,
        facts=dict(_facts(report)),
        resolution=dict.fromkeys(
            [f"{stage}_time_{moment}" for stage in STAGES for moment in ("min", "mean", "median", "max")], _STEP_S
        )
        | {f"total_time_p{percent}": _STEP_S for percent in PERCENTILES}
        | {f"{stage}_time_sd": 0.1e-3 for stage in STAGES}
        | _of_rates(report),
    )


def _of_rates(report: _core.AbReport) -> dict[str, float]:
    """The resolution of numbers that follow from the time taken, which has milliseconds."""
    taken = report["duration_s"]
    done, size = report["complete_requests"] or 0, report["html_bytes"] or 0
    if not taken or not done:
        return {}
    coarse = _STEP_S / taken
    between = taken / done
    return {
        "time_taken": _STEP_S,
        "goodput": 8 * size / taken * coarse,
        "time_between_requests": between * coarse,
        "time_per_request": between * (report["concurrency"] or 0) * coarse,
    }


def _between(first: int, lines: Sequence[str]) -> range:
    """The numbers of the lines among which ab prints counts that are not 0; none where their last one is missing."""
    at = {label: first + index for index, line in enumerate(lines) for label in _ENDS if line.startswith(label)}
    return range(at.get(_ENDS[0], first), at.get(_ENDS[1], first))


def _others(first: int, lines: Sequence[str], messages: Sequence[str]) -> Iterator[Diagnostic]:
    """``messages`` in their order: the same text may be there twice."""
    left = list(enumerate(lines, first))
    for message in messages:
        index = next((index for index, (_, line) in enumerate(left) if line.strip()[:SHOWN] == message[:SHOWN]), None)
        yield Diagnostic(f"is no line of ab's report: {message[:SHOWN]!r}", None if index is None else left[index][0])
        left = left[index + 1 :] if index is not None else left


def _facts(report: _core.AbReport) -> Iterator[tuple[str, str | int | float | bool]]:
    names = {
        "version": "version",
        "server": "server_software",
        "tls": "tls_protocol",
        "path": "document_path",
        "concurrency": "concurrency",
        "document_bytes": "document_bytes",
    }
    printed: Mapping[str, object] = report
    for name, key in names.items():
        fact = printed[key]
        if isinstance(fact, str | int | float) and fact != "":
            yield name, fact
    if report["complete_requests"] is not None:
        yield "keep_alive", report["keep_alive_requests"] is not None
