"""Formats ``ab-text``, ``ab-csv`` and ``ab-tsv``: what ApacheBench prints, and what it writes with ``-e`` and ``-g``.

The metrics are the workload's ``http``.  Each file alone has less than the workload, which keeps all three:

* the text has counts and rates as the workload takes them, and times to a millisecond;
* the CSV has percentiles to a microsecond, and nothing else.  For the highest of them ab may look past its last request, where
  it finds zeros or anything else.  The CSV does not have the number of requests, but percentiles never fall and none is above
  the longest time, at 100 %: any other value is null;
* the TSV has a row a request, to a millisecond: the table ``requests``, and moments of it.

Several reports in one text are several measurements.  ab leaves some counts out where they are 0 (other failures, answers
other than 2xx): they are read as 0 only in a report that is whole.
Source: ab.c of Apache httpd 2.4, and ab(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import MOST, SHOWN, chosen, head_text, parsed, values, whole_lines
from twinbed.imports.text.reports import Layout, holding, load_format
from twinbed.metrics.http import METRICS, MOMENTS, PERCENTILES, STAGES
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.http import ab_numbers, request_cautions

if TYPE_CHECKING:
    import pyarrow as pa


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
"""Counts that ab leaves out where they are 0."""
_ENDS = ("Complete requests:", "Total transferred:")
"""The lines between which ab prints them."""


def _measurement(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    report, diagnostics = parsed(_core.ab, lines, first)
    printed: Mapping[str, object] = report
    diagnostics = [*diagnostics, *_other_lines(first, lines, report["messages"]), *cut]
    among_counts = _between(first, lines)
    done = report["complete_requests"]
    numbers = dict(ab_numbers(report))
    times = dict(report["percentiles"]) if done and numbers["requests"] else {}
    numbers |= {f"total_time_p{percent}": times.get(percent) for percent in PERCENTILES}
    if report["transferred_bytes"] is None or any(
        diagnostic.line is None or diagnostic.line in among_counts for diagnostic in diagnostics
    ):
        numbers |= {name: None for name, key in _UNPRINTED.items() if printed[key] is None}
    numbers = {name: None if number is not None and not 0 <= number <= MOST else number for name, number in numbers.items()}
    cautions = [*request_cautions(numbers, done)]
    if done is None:
        made = report["aborted_after_requests"]
        detail = f"ab gave up{'' if made is None else f' after {made} requests'}: {'; '.join(report['messages'][:3])}"
        cautions.insert(0, Caution(Kind.FAILED_REQUESTS, detail))
    return Measurement(
        values=list(values(numbers, METRICS)),
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
    """Return the resolution of numbers that follow from the time taken, which has milliseconds."""
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
    """Return the numbers of the lines among which ab prints counts that are not 0; none where the last line is missing."""
    at = {label: first + index for index, line in enumerate(lines) for label in _ENDS if line.startswith(label)}
    return range(at.get(_ENDS[0], first), at.get(_ENDS[1], first))


def _other_lines(first: int, lines: Sequence[str], messages: Sequence[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each message, in order: the same text may be there twice."""
    left = list(enumerate(lines, first))
    for message in messages:
        index = next((index for index, (_, line) in enumerate(left) if line.strip()[:SHOWN] == message[:SHOWN]), None)
        yield Diagnostic(f"is not a line of ab's report: {message[:SHOWN]!r}", None if index is None else left[index][0])
        left = left[index + 1 :] if index is not None else left


def _facts(report: _core.AbReport) -> Iterator[tuple[str, Fact]]:
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


CSV_HEADING = "Percentage served,Time in ms"
PERCENT = {"total_time_min": 0, "total_time_max": 100} | {f"total_time_p{percent}": percent for percent in PERCENTILES}
TSV_HEADING = "starttime\tseconds\tctime\tdtime\tttime\twait"
TSV_NAMES = ("requests", *(f"{stage}_time_{moment}" for stage in STAGES for moment in MOMENTS))


def _starts(heading: str, head: bytes) -> bool:
    return head_text(head).startswith(heading)


def _read_csv(source: Source, options: Document) -> Sequence[Measurement]:
    lines, cut = whole_lines(source.text())
    table, diagnostics = parsed(_core.ab_percentiles, lines)
    times: dict[int, float | None] = dict(zip(table["percent"].to_pylist(), table["total_s"].to_pylist(), strict=True))
    last = times.get(100)
    if last is None or not 0 <= last <= MOST:
        raise FormatError("ends before 100 %; without that line nothing shows which percentiles are real")
    longest = 0.0
    for percent, time in sorted(times.items()):
        if time is not None and longest <= time <= last:
            longest = time
        else:
            times[percent] = None
    numbers = {name: times.get(percent) for name, percent in PERCENT.items()}
    return [Measurement(values=list(values(numbers, METRICS)), diagnostics=[*diagnostics, *cut])]


def _read_tsv(source: Source, options: Document) -> Sequence[Measurement]:
    import pyarrow as pa
    import pyarrow.compute as pc

    lines, cut = whole_lines(source.text())
    table, diagnostics = parsed(_core.ab_requests, lines)
    if not table.num_rows:
        raise FormatError("has no request")
    numbers = {"requests": float(table.num_rows), **dict(_moments(table))}
    return [
        Measurement(
            values=list(values(numbers, METRICS)),
            tables={"requests": table.add_column(0, "host", pa.array([""] * table.num_rows, pa.string()))},
            diagnostics=[*diagnostics, *cut],
            started_s=float(pc.min(table["start_s"]).as_py()),
            resolution=dict.fromkeys(TSV_NAMES[1:], _STEP_S),
        )
    ]


def _moments(table: pa.Table) -> Iterator[tuple[str, float | None]]:
    import pyarrow.compute as pc

    for stage in STAGES:
        column = table[f"{stage}_s"]
        known = pc.min(column).as_py() >= 0
        numbers = {
            "min": pc.min(column).as_py(),
            "mean": pc.mean(column).as_py(),
            "sd": pc.stddev(column, ddof=1).as_py() if table.num_rows > 1 else None,
            "median": pc.quantile(column, 0.5)[0].as_py(),
            "max": pc.max(column).as_py(),
        }
        for moment in MOMENTS:
            yield f"{stage}_time_{moment}", numbers[moment] if known else None


FORMATS = (
    load_format(
        "ab-text", "what ApacheBench (ab) prints", METRICS, holding(_FIELD, "ApacheBench", "[#/sec]"), _LAYOUT, _measurement
    ),
    Format("ab-csv", "ApacheBench's percentiles (ab -e)", chosen(METRICS, PERCENT), partial(_starts, CSV_HEADING), _read_csv),
    Format(
        "ab-tsv",
        "ApacheBench's requests, one per row (ab -g)",
        chosen(METRICS, TSV_NAMES),
        partial(_starts, TSV_HEADING),
        _read_tsv,
        work="requests",
    ),
)
