"""Format ``siege``: what this load generator prints, as lines or (from 4.0.5 on) as JSON; several runs in one text.

The metrics are the workload's ``http``.  Times have two decimals of a second, by a clock of as many: where the elapsed time is
0.00 siege prints rates of 0.00, which are null here.  ``MB`` is 2^20 bytes.  siege 4 counts documents without their headers
(its manual says with them, and older versions may): data of others are null.

siege's transactions are answers of any status; its successful ones those below 400, and may count redirects besides.  Statuses
are counted where every transaction has its line (``-v``), else the answers other than 2xx are null, with a caution where fewer
were successful than transactions.  Availability is not read: it follows from the transactions, and a 404 counts as available.
Source: siege(1), and what siege 4.0.7 wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.load import DECIMAL, SHOWN, number, values, whole_lines
from twinbed.imports.text.reports import Layout, each_read, head_of, reports
from twinbed.metrics.http import METRICS, UNITS
from twinbed.metrics.metric import Metric
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
_MARKS = (" bytes ==> ", "** SIEGE ", "Transactions:", '"transactions":')
_RECOGNISED = re.compile(
    r"HTTP/[0-9.]+ [0-9]{3}[ ]+[0-9.]+ secs:[ ]+[0-9]+ bytes ==> "
    r"|^[ \t]*(?:\*\* SIEGE [0-9]|Transactions:[ \t]+[0-9]+ hits[ \t]*$"
    r'|\{?[ \t]*"transactions":[ \t]+[0-9]+,[ \t]*\n[ \t]*"availability":)',
    re.MULTILINE,
)


class Siege(Format):
    name = "siege"
    summary = "what siege prints, as lines or JSON"
    metrics: Sequence[Metric] = METRICS
    work = "requests"
    rate = "requests_per_second"

    def recognises(self, head: bytes) -> bool:
        text = head_of(head)
        return any(mark in text for mark in _MARKS) and _RECOGNISED.search(text.replace("\r\n", "\n")) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        lines, cut = whole_lines(source.text())
        return each_read(reports(lines, _LAYOUT), _reading, cut)


def _labelled(line: str) -> tuple[str, float | None] | None:
    """A label in small letters, and its number; None where it has another unit."""
    if (match := _LINE.fullmatch(line)) is not None:
        label = match[1].lower()
        if label in _UNIT_OF:
            return label, number(match[2]) if (match[3] or "") == _UNIT_OF[label] else None
    elif (match := _MEMBER.fullmatch(line)) is not None:
        label = match[1].replace("_", " ")
        if label in _UNIT_OF:
            return label, number(match[2])
    return None


def _reading(first: int, lines: Sequence[str], cut: Sequence[Diagnostic]) -> Measurement:
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
                diagnostics.append(Diagnostic(f"has a unit that siege does not print: {line.strip()[:SHOWN]!r}", first + index))
        elif (match := _TRANSACTION.fullmatch(line)) is not None:
            statuses.append(int(match[1]))
        elif (match := _VERSION.match(line)) is not None:
            version = match[1]
        elif _ABORTED in line:
            errors.insert(0, _ABORTED)
        elif (match := _ERROR.search(line)) is not None:
            errors.append(match[1])
        elif not _NOTHING.match(line):
            diagnostics.append(Diagnostic(f"cannot be read: {line.strip()[:SHOWN]!r}", first + index))
    if figures.get("transactions") is None:
        raise FormatError("has no count of transactions", first)
    diagnostics += cut
    numbers = dict(_numbers(figures, statuses, json or version.startswith("4.")))
    return Measurement(
        values=list(values(numbers, UNITS)),
        cautions=list(_cautions(figures, numbers, errors)),
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
    # 0.00 is what it prints of less than 5 kB.
    data = data if data or not done else None
    yield "requests", done
    yield "requests_per_second", figures.get("transaction rate") if timed else None
    megabytes = _finer(data, elapsed, throughput) if timed else None
    yield "goodput", 8 * megabytes * MEBIBYTE if documents and megabytes is not None else None
    yield "time_taken", elapsed
    yield "document_transferred_bytes", data * MEBIBYTE if documents and data is not None else None
    yield "concurrency", figures.get("concurrency") if timed else None
    yield "failed_requests", figures.get("failed transactions")
    yield "non_2xx", sum(not 200 <= each < 300 for each in statuses) if statuses and len(statuses) == done else None
    for moment, label in (("min", "shortest transaction"), ("mean", "response time"), ("max", "longest transaction")):
        yield f"total_time_{moment}", figures.get(label) if done else None


def _finer(data: float | None, elapsed: float | None, throughput: float | None) -> float | None:
    """Megabytes a second, by the throughput or by data and time: whichever is rounded less."""
    if not data or not elapsed or throughput is None:
        return throughput or None
    return data / elapsed if not throughput or 1 / data + 1 / elapsed < 1 / throughput else throughput


def _cautions(
    figures: Mapping[str, float | None], numbers: Mapping[str, float | None], errors: Sequence[str]
) -> Iterator[Caution]:
    done, successful = figures["transactions"], figures.get("successful transactions")
    failed = numbers["failed_requests"]
    for caution in request_cautions(numbers, None if done is None or failed is None else done + failed):
        first = f"; {errors[0]}" if errors and caution.kind is Kind.FAILED_REQUESTS else ""
        yield Caution(caution.kind, caution.detail + first)
    if numbers["non_2xx"] is None and done is not None and successful is not None and successful < done:
        yield Caution(Kind.NON_2XX, f"{successful:.0f} of {done:.0f} transactions were answered with a status below 400")


siege = Siege()
