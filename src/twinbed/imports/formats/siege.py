"""Formats ``siege`` and ``siege-log``: what this load generator prints, and the table to which ``-l`` adds a row a run.

``siege`` is lines or (from 4.0.5 on) JSON; several runs in one text.  The metrics are the workload's ``http``.  Times have two
decimals of a second, by a clock of as many.  Where the elapsed time is 0.00 siege prints rates of 0.00: they are null here.
``MB`` is 2^20 bytes.  siege 4 counts documents without their headers, though its manual says with them.  Older versions may
count them: data of other versions are null.

siege's transactions are answers of any status; its successful ones those below 400, and may count redirects besides.  Statuses
are counted where every transaction has its line (``-v``).  Else the answers other than 2xx are null, with a caution where fewer
were successful than transactions.  Availability is not read: it follows from the transactions, and a 404 counts as available.

In ``siege-log`` a row is a measurement.  The table cuts data to whole MB and computes throughput from them, so both are
less exact than their digits.  Headers count in some versions of siege, and the table has no version.  So no goodput and no
bytes are read.  The date is when the run ended, by a clock of an unknown zone: no start is read.  OKAY counts answers
with a status below 400.
Source: siege(1), "LOGGING", log.c of siege 4, and what siege 4.0.7 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import DECIMAL, head_text, number, unread, values, whole_lines
from twinbed.imports.text.reports import Layout, holding, load_format
from twinbed.metrics.http import METRICS
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document
from twinbed.readers.http import request_cautions

MEBIBYTE = 2.0**20
_STEP = 0.005
"""The resolution of numbers that are printed with two decimals."""
_UNIT_OF = {
    "transactions": "hits",
    "availability": "%",
    "elapsed time": "secs",
    "data transferred": "MB",
    "response time": "secs",
    "transaction rate": "trans/sec",
    "throughput": "MB/sec",
    "concurrency": "",
    "successful transactions": "",
    "failed transactions": "",
    "longest transaction": "",
    "shortest transaction": "",
}
_LINE = re.compile(rf"([A-Z][a-z]+(?: [a-z]+)?):\s+({DECIMAL})(?: (hits|%|secs|MB|trans/sec|MB/sec))?\s*")
_MEMBER = re.compile(rf'(?:\{{|)\s*"([a-z_]+)":\s+({DECIMAL}),?\s*')
_TRANSACTION = re.compile(rf"\s*HTTP/[0-9.]+ ([0-9]{{3}})\s+{DECIMAL} secs:\s+[0-9]+ bytes ==> .*")
_VERSION = re.compile(r"\*\* SIEGE ([0-9]\S*)")
_ERROR = re.compile(r"\[(?:error|alert|warning|fatal)\] (.*)")
_ABORTED = "siege aborted due to excessive socket failure"
_NOTHING = re.compile(
    r"\*\* Preparing |The server is now under siege|can change the failure threshold in |Lifting the server siege"
    r"|[{}\s]*$|done\.$|\^C"
)
_LAYOUT = Layout(
    begins=None,
    result=re.compile(r'Transactions:\s|(?:\{\s*)?"transactions":'),
    again=re.compile(
        r"\*\* SIEGE [0-9]|\*\* Preparing |The server is now under siege|HTTP/[0-9.]+ [0-9]{3}\s.* bytes ==> "
        r'|Transactions:\s|\{\s*$|(?:\{\s*)?"transactions":'
    ),
    line=re.compile(r'(?:[A-Z][a-z]+(?: [a-z]+)?:\s+[0-9]|"[a-z_]+":\s+[0-9]|\}\s*$|\[(?:error|alert|warning|fatal)\] )'),
)
_RECOGNISED = re.compile(
    r"HTTP/[0-9.]+ [0-9]{3}[ ]+[0-9.]+ secs:[ ]+[0-9]+ bytes ==> "
    r"|^[ \t]*(?:\*\* SIEGE [0-9]|Transactions:[ \t]+[0-9]+ hits[ \t]*$"
    r'|\{?[ \t]*"transactions":[ \t]+[0-9]+,[ \t]*\n[ \t]*"availability":)',
    re.MULTILINE,
)


def _labelled(line: str) -> tuple[str, float | None] | None:
    """Return a label in small letters, and its number, which is None where it has another unit."""
    if (match := _LINE.fullmatch(line)) is not None:
        label = match[1].lower()
        if label in _UNIT_OF:
            return label, number(match[2]) if (match[3] or "") == _UNIT_OF[label] else None
    elif (match := _MEMBER.fullmatch(line)) is not None:
        label = match[1].replace("_", " ")
        if label in _UNIT_OF:
            return label, number(match[2])
    return None


def _measurement(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
    figures: dict[str, float | None] = {}
    statuses: list[int] = []
    errors: list[str] = []
    diagnostics: list[Diagnostic] = []
    version, json = "", False
    for index, line in enumerate(lines):
        labelled = _labelled(line)
        if labelled is not None:
            figures[labelled[0]] = labelled[1]
            json = json or '"' in line
            if labelled[1] is None:
                diagnostics.append(unread(line, first + index, "has a unit that siege does not print"))
        elif (match := _TRANSACTION.fullmatch(line)) is not None:
            statuses.append(int(match[1]))
        elif (match := _VERSION.match(line)) is not None:
            version = match[1]
        elif _ABORTED in line:
            errors.insert(0, _ABORTED)
        elif (match := _ERROR.search(line)) is not None:
            errors.append(match[1])
        elif not _NOTHING.match(line):
            diagnostics.append(unread(line, first + index))
    if figures.get("transactions") is None:
        raise FormatError("has no count of transactions", first)
    diagnostics += cut
    numbers = dict(_numbers(figures, statuses, json or version.startswith("4.")))
    return Measurement(
        values=list(values(numbers, METRICS)),
        cautions=list(_cautions(figures["transactions"], figures.get("successful transactions"), numbers, errors)),
        diagnostics=diagnostics,
        facts={"version": version} if version else {},
        resolution={
            "time_taken": _STEP,
            "document_transferred_bytes": _STEP * MEBIBYTE,
            "goodput": 8 * _STEP * MEBIBYTE,
            **dict.fromkeys(("total_time_min", "total_time_mean", "total_time_max"), _STEP),
        },
    )


def _numbers(
    figures: Mapping[str, float | None], statuses: Sequence[int], documents: bool
) -> Iterator[tuple[str, float | None]]:
    done, elapsed = figures["transactions"], figures.get("elapsed time")
    data, throughput = figures.get("data transferred"), figures.get("throughput")
    timed = bool(done and elapsed)
    # siege prints 0.00 for less than 5 kB.
    data = data if data or not done else None
    yield "requests", done
    yield "requests_per_second", figures.get("transaction rate") if timed else None
    megabytes = _finer(data, elapsed, throughput) if timed else None
    yield "goodput", 8 * megabytes * MEBIBYTE if documents and megabytes is not None else None
    yield "time_taken", elapsed
    yield "document_transferred_bytes", data * MEBIBYTE if documents and data is not None else None
    yield "concurrency", figures.get("concurrency") if timed else None
    yield "failed_requests", figures.get("failed transactions")
    yield "non_2xx", sum(not 200 <= status < 300 for status in statuses) if statuses and len(statuses) == done else None
    for moment, label in (("min", "shortest transaction"), ("mean", "response time"), ("max", "longest transaction")):
        yield f"total_time_{moment}", figures.get(label) if done else None


def _finer(data: float | None, elapsed: float | None, throughput: float | None) -> float | None:
    """Return megabytes a second, by the throughput or by data and time: whichever is rounded less."""
    if not data or not elapsed or throughput is None:
        return throughput or None
    return data / elapsed if not throughput or 1 / data + 1 / elapsed < 1 / throughput else throughput


def _cautions(
    done: float | None, successful: float | None, numbers: Mapping[str, float | None], errors: Sequence[str]
) -> Iterator[Caution]:
    failed = numbers["failed_requests"]
    for caution in request_cautions(numbers, None if done is None or failed is None else done + failed):
        first = f"; {errors[0]}" if errors and caution.kind is Kind.FAILED_REQUESTS else ""
        yield Caution(caution.kind, caution.detail + first)
    if numbers["non_2xx"] is None and done is not None and successful is not None and successful < done:
        yield Caution(Kind.NON_2XX, f"{successful:.0f} of {done:.0f} transactions were answered with a status below 400")


_COLUMNS = ("trans", "elap time", "data trans", "resp time", "trans rate", "throughput", "concurrent", "okay", "failed")
_HEAD = re.compile(r"[ \t]*Date & Time," + ",".join(rf"[ \t]*{name}" for name in _COLUMNS) + r"[ \t]*", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_MARK = re.compile(r"\*\*\*\* .* \*\*\*\*")
"""A line that ``siege -m`` writes between rows."""
_NONE = ("nan", "-nan", "inf", "-inf")
"""The result of a division by 0 in siege: no transactions, or no time."""


def _recognises_log(head: bytes) -> bool:
    if b"Elap Time" not in head:
        return False
    return any(_HEAD.fullmatch(line) for line in head_text(head).splitlines())


def _read_log(source: Source, options: Document) -> Sequence[Measurement]:
    lines, diagnostics = whole_lines(source.text())
    cut = {diagnostic.line for diagnostic in diagnostics}
    measurements: list[Measurement] = []
    for index, line in enumerate(source.text().split("\n") if cut else lines, start=1):
        if not line.strip() or _HEAD.fullmatch(line) or _MARK.fullmatch(line.strip()):
            continue
        figures = _row(line)
        if figures is None:
            diagnostics.append(unread(line, index, "is not a row of siege's log"))
            continue
        # A last row without its line end may have lost digits of its last number, and of no other.
        measurements.append(_row_measurement(figures | ({"failed": None} if index in cut else {})))
    if not measurements:
        raise FormatError("has no row of siege's log")
    return [*measurements[:-1], replace(measurements[-1], diagnostics=diagnostics)]


def _row(line: str) -> dict[str, float | None] | None:
    """Return the numbers of a row by their columns; None where it is no row."""
    date, *cells = (cell.strip() for cell in line.split(","))
    if not _DATE.fullmatch(date) or len(cells) != len(_COLUMNS):
        return None
    figures = {column: number(cell) for column, cell in zip(_COLUMNS, cells, strict=True)}
    wrong = [cell for cell in cells if number(cell) is None and cell.lower() not in _NONE]
    return None if wrong or figures["trans"] is None else figures


def _row_measurement(figures: Mapping[str, float | None]) -> Measurement:
    done, elapsed, failed = (figures[name] for name in ("trans", "elap time", "failed"))
    timed = bool(done and elapsed)
    numbers: dict[str, float | None] = {
        "requests": done,
        "requests_per_second": figures["trans rate"] if timed else None,
        "time_taken": elapsed,
        "concurrency": figures["concurrent"] if timed else None,
        "failed_requests": failed,
        "non_2xx": None,
        "total_time_mean": figures["resp time"] if done else None,
    }
    return Measurement(
        values=list(values(numbers, METRICS)),
        cautions=list(_cautions(done, figures["okay"], numbers, ())),
        resolution={"time_taken": _STEP, "total_time_mean": _STEP},
    )


FORMATS = (
    load_format(
        "siege",
        "what siege prints, as lines or JSON",
        METRICS,
        holding(_RECOGNISED, " bytes ==> ", "** SIEGE ", "Transactions:", '"transactions":'),
        _LAYOUT,
        _measurement,
    ),
    Format(
        "siege-log",
        "the table of runs that siege -l keeps, one row per measurement",
        METRICS,
        _recognises_log,
        _read_log,
        work="requests",
        rate="requests_per_second",
    ),
)
