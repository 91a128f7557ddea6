"""netperf's text: the classic tables of stream and request/response tests, and omni's selected outputs of ``-k`` and ``-o``.

Streams give ``goodput`` (for UDP the rate that the receiver got, for TCP netperf's throughput).  Request/response tests give
``requests_per_second`` and, where they were selected, times of transactions.  Rates are in bit/s by the unit of the heading;
netperf's bytes have prefixes of 2^10 (-f K, M, G), its bits of 10^3.  CPU utilisation is of the client's and the server's whole
host.  Each test of a file is a measurement.

Table ``intervals``: the interim results of ``-D``: ``ended_s`` (since 1970), ``seconds``, ``rate``, ``unit``.

Limits: output without headings (-P 0) and the tables of ``-O`` are refused: nothing in them names the numbers.
Source: netperf's manual, "Using Netperf to Measure ..." and "Omni Output Selectors".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import chosen, real, table, unread, values
from twinbed.metrics.counters import METRICS as COUNTERS
from twinbed.metrics.http import METRICS as HTTP
from twinbed.metrics.iperf3 import METRICS as IPERF3
from twinbed.metrics.metric import Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = re.compile(r"(?:MIGRATED )?([A-Za-z0-9/ ]{2,60}?) TEST\b")
_TITLE = re.compile(r"(?:TCP|UDP|SCTP|DCCP|OMNI|XTI|STREAM|DG|SOCKET)\b")
_SELECTED = re.compile(r"([A-Z][A-Z0-9_]{2,60})=(.*)")
_INTERIM = re.compile(r"Interim result:\s+(\S+) (\S+) over (\S+) seconds ending at (\S+)")
_RATE = re.compile(r"(?:10\^([0369])bits|([KMG]?)Bytes)/s(?:ec)?\b")
_ERROR = re.compile(r"\w+: .*\berror\b", re.IGNORECASE)
_LABELS = {
    "remote bytes received": "REMOTE_BYTES_RECVD",
    "local bytes received": "LOCAL_BYTES_RECVD",
    "local transport retransmissions": "LOCAL_TRANSPORT_RETRANS",
    "remote transport retransmissions": "REMOTE_TRANSPORT_RETRANS",
    "minimum latency microseconds": "MIN_LATENCY",
    "maximum latency microseconds": "MAX_LATENCY",
    "50th percentile latency microseconds": "P50_LATENCY",
    "90th percentile latency microseconds": "P90_LATENCY",
    "99th percentile latency microseconds": "P99_LATENCY",
}
"""Labels of ``-o`` that are not the selector's name in words."""
_UNITS_OF_LABELS = re.compile(r" (?:\(sec\)|microseconds|%)$")


@dataclass
class Test:
    """One test. ``line`` is its heading's."""

    line: int
    title: str
    rows: list[tuple[int, list[float]]] = field(default_factory=list)
    """(line, numbers) of the lines that hold numbers alone."""
    selected: dict[str, str] = field(default_factory=dict)
    heading: str = ""
    interims: list[tuple[float, float, float, str]] = field(default_factory=list)
    """(ended, seconds, rate, unit)"""
    warnings: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def transactions(self) -> bool:
        return "response" in self.title.lower() or self.selected.get("THROUGHPUT_UNITS") == "Trans/s"


def tests(lines: Sequence[str]) -> list[Test]:
    """Return each test that has a heading."""
    tests_: list[Test] = []
    labels: list[str] = []
    for number, line in enumerate(lines, start=1):
        header = _HEADER.match(line)
        if header and _TITLE.match(header[1]):
            tests_.append(Test(number, header[1]))
            labels = []
        elif tests_ and line.strip():
            labels = _line(tests_[-1], number, line.strip(), labels)
    return tests_


def _line(test: Test, number: int, line: str, labels: list[str]) -> list[str]:
    """Take in a line, and return the labels of the next line."""
    if interim := _INTERIM.match(line):
        _interim(test, number, interim)
    elif selected := _SELECTED.fullmatch(line):
        test.selected.setdefault(selected[1], selected[2])
    elif labels:
        cells = _cells(line)
        if len(cells) == len(labels):
            test.selected |= dict(zip(labels, cells, strict=True))
        else:
            test.diagnostics.append(Diagnostic(f"has {len(cells)} values for {len(labels)} labels", number))
    elif line.startswith(("!!!", "netperf:")) or _ERROR.match(line):
        test.warnings.append(line.lstrip("! "))
    elif names := _labels(line):
        return names
    elif line[0].isdecimal():
        row = [real(word) for word in line.split()]
        if None in row:
            test.diagnostics.append(unread(line, number))
        else:
            test.rows.append((number, [value for value in row if value is not None]))
    else:
        test.heading += f"{line}\n"
    return []


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _labels(line: str) -> list[str]:
    """Return the selectors of a line of ``-o``'s labels; empty where it is no such line."""
    cells = _cells(line)
    if len(cells) < 2 or not all(any(letter.isalpha() for letter in cell) for cell in cells):
        return []
    return [_selector(label) for label in cells]


def _selector(label: str) -> str:
    words = label.strip().lower()
    return _LABELS.get(words) or _UNITS_OF_LABELS.sub("", words).upper().replace(" ", "_")


def _interim(test: Test, number: int, match: re.Match[str]) -> None:
    rate, seconds, ended = (real(match[at]) for at in (1, 3, 4))
    factor = 1.0 if match[2] == "Trans/s" else scale(match[2])
    if rate is None or seconds is None or ended is None or factor is None:
        test.diagnostics.append(unread(match[0], number))
        return
    test.interims.append((ended, seconds, rate * factor, "1/s" if match[2] == "Trans/s" else "bit/s"))


def scale(unit: str) -> float | None:
    """Return how many bit/s one of the unit is."""
    match = _RATE.search(unit)
    if match is None:
        return None
    return 10.0 ** int(match[1]) if match[1] else 8.0 * 1024 ** ("", "K", "M", "G").index(match[2])


_START = re.compile(
    rb"^(?:MIGRATED )?(?:(?:TCP|UDP|SCTP|DCCP|OMNI|XTI|STREAM|DG|SOCKET)[A-Za-z0-9/ ]{0,50}) TEST\b", re.MULTILINE
)
_TIMES = {
    "MIN_LATENCY": "min",
    "MEAN_LATENCY": "mean",
    "STDDEV_LATENCY": "sd",
    "P50_LATENCY": "p50",
    "P90_LATENCY": "p90",
    "P99_LATENCY": "p99",
    "MAX_LATENCY": "max",
}
_FROM_IPERF3 = frozenset(
    {
        *("received_bytes", "goodput", "sent_bytes", "send_rate", "tcp_retransmissions"),
        *("sent_datagrams", "received_datagrams", "lost_datagrams", "loss"),
    }
)
_FROM_HTTP = frozenset({"requests_per_second", "time_taken", *(f"total_time_{name}" for name in _TIMES.values())})
METRICS = (
    *chosen(IPERF3, _FROM_IPERF3),
    *chosen(HTTP, _FROM_HTTP),
    *chosen(COUNTERS, ["cpu_busy_share"]),
)
_APART = 0.1
"""Share by which interim results may miss the whole: netperf's interims end a little before it does."""

Numbers = dict[str, float | None]


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    tests_ = tests(source.text().split("\n"))
    if not tests_:
        raise FormatError("has no heading of a netperf test")
    measurements = [measurement for test in tests_ if (measurement := _measurement(test)) is not None]
    if not measurements:
        first_warning = next((warning for test in tests_ for warning in test.warnings), "")
        why = f": {first_warning}" if first_warning else ": it is cut, or a table of -O; use -k or -o in place of -O"
        raise FormatError(f"has no result that can be read{why}", tests_[0].line)
    return measurements


def _measurement(test: Test) -> Measurement | None:
    cautions = [Caution(Kind.FEW_REPLICATES, f"netperf: {test.warnings[1]}")] if _unsure(test) else []
    if test.selected:
        numbers = _of_selected(test)
    elif test.transactions:
        numbers = _of_transactions(test)
    elif test.title.startswith("UDP") and "STREAM" in test.title:
        numbers = _of_datagrams(test, cautions)
    else:
        numbers = _of_stream(test)
    if not any(number is not None for number in numbers.values()):
        return None
    of_test = list(values({name: number for name, number in numbers.items() if not name.startswith("cpu_")}, METRICS))
    for host in ("client", "server"):
        share = numbers.get(f"cpu_{host}")
        if share is not None and share >= 0:
            of_test.append(Value("cpu_busy_share", share / 100, "1", host))
    cautions += _contradictions(test, numbers)
    tables = {"intervals": _table(test)} if test.interims else {}
    started = test.interims[0][0] - test.interims[0][1] if test.interims else None
    return Measurement(of_test, tables, cautions, test.diagnostics, _facts(test, numbers), started)


def _unsure(test: Test) -> bool:
    return len(test.warnings) > 1 and "confidence" in test.warnings[1]


def _of_selected(test: Test) -> Numbers:
    numbers: Numbers = {}

    def number(key: str, factor: float | None = 1.0) -> float | None:
        text = test.selected.get(key)
        value = None if text is None else real(text.strip())
        if text is not None and value is None:
            test.diagnostics.append(Diagnostic(f"{key} is not a number: {text[:40]}", test.line))
        # netperf prints -1 for unknown.
        return None if value is None or factor is None or value < 0 else value * factor

    unit = test.selected.get("THROUGHPUT_UNITS", "")
    if test.transactions:
        numbers["requests_per_second"] = number("THROUGHPUT")
    else:
        factor = scale(unit)
        if factor is None and "THROUGHPUT" in test.selected:
            test.diagnostics.append(
                Diagnostic(f"THROUGHPUT has no known unit: {unit[:40] or 'select THROUGHPUT_UNITS too'}", test.line)
            )
        numbers["goodput"] = number("THROUGHPUT", factor)
        if "LOCAL_SEND_THROUGHPUT" in test.selected:
            numbers["send_rate"] = number("LOCAL_SEND_THROUGHPUT", factor)
        sender, receiver = ("REMOTE", "LOCAL") if _receives(test) else ("LOCAL", "REMOTE")
        numbers |= {"sent_bytes": number(f"{sender}_BYTES_SENT"), "received_bytes": number(f"{receiver}_BYTES_RECVD")}
        numbers["tcp_retransmissions"] = number(f"{sender}_TRANSPORT_RETRANS")
    for key, name in _TIMES.items():
        numbers[f"total_time_{name}"] = number(key, 1e-6)
    numbers |= {"time_taken": number("ELAPSED_TIME"), "cpu_client": number("LOCAL_CPU_UTIL")}
    numbers["cpu_server"] = number("REMOTE_CPU_UTIL")
    return {name: value for name, value in numbers.items() if value is not None or name in ("goodput", "requests_per_second")}


def _receives(test: Test) -> bool:
    return "MAERTS" in test.title or test.selected.get("DIRECTION") == "Receive"


def _of_stream(test: Test) -> Numbers:
    """Read receive and send socket's size, message's size, seconds, throughput, and with -c -C the CPU of both."""
    factor = scale(test.heading)
    row = next((row for _, row in test.rows if len(row) in (5, 9)), None)
    if row is None or factor is None:
        return {}
    numbers: Numbers = {"goodput": row[4] * factor, "time_taken": row[3]}
    if len(row) == 9:
        numbers |= {"cpu_client": row[5], "cpu_server": row[6]}
    return numbers


def _of_transactions(test: Test) -> Numbers:
    """Read sockets' sizes, the request's and the answer's, seconds, rate, and with -c -C the CPU of both."""
    row = next((row for _, row in test.rows if len(row) in (6, 10)), None)
    if row is None:
        return {}
    numbers: Numbers = {"requests_per_second": row[5], "time_taken": row[4]}
    if len(row) == 10:
        numbers |= {"cpu_client": row[6], "cpu_server": row[7]}
    return numbers


def _of_datagrams(test: Test, cautions: list[Caution]) -> Numbers:
    """Read sent messages (socket's size, message's size, seconds, sent, failed, rate) and, below them, received ones."""
    factor = scale(test.heading)
    sent = next((row for _, row in test.rows if len(row) in (6, 8)), None)
    came = next((row for _, row in test.rows if len(row) in (4, 6) and row is not sent), None)
    if sent is None or factor is None:
        return {}
    numbers: Numbers = {"send_rate": sent[5] * factor, "time_taken": sent[2], "sent_datagrams": sent[3]}
    numbers |= {"goodput": None, "received_datagrams": None, "lost_datagrams": None, "loss": None}
    if len(sent) == 8:
        numbers["cpu_client"] = sent[6]
    if came is None:
        test.diagnostics.append(Diagnostic("has no line of received messages", test.line))
        return numbers
    numbers |= {"goodput": came[3] * factor, "received_datagrams": came[2]}
    if came[2] <= sent[3]:
        numbers["lost_datagrams"] = sent[3] - came[2]
        numbers["loss"] = (sent[3] - came[2]) / sent[3] if sent[3] else None
    if len(came) == 6:
        numbers["cpu_server"] = came[4]
    cautions += _miscounted("sent", sent[3], sent, sent[5] * factor, sent[2], factor)
    cautions += _miscounted("received", came[2], sent, came[3] * factor, came[1], factor)
    return numbers


def _miscounted(
    what: str, messages: float, sent: Sequence[float], rate: float, seconds: float, factor: float
) -> Iterator[Caution]:
    """Warn of a rate that its messages contradict: rates have hundredths of the unit (-f g: tenths), seconds hundredths."""
    if seconds <= 0:
        return
    by_messages = 8 * messages * sent[1] / seconds
    if abs(by_messages - rate) > (0.005 / seconds + 0.002) * by_messages + 0.1 * factor:
        yield Caution(Kind.CONTRADICTED, f"{what}: {by_messages:.6g} bit/s by messages and time, {rate:.6g} bit/s by the rate")


def _contradictions(test: Test, numbers: Numbers) -> Iterator[Caution]:
    rate = numbers.get("goodput") or numbers.get("requests_per_second")
    seconds = sum(interim[1] for interim in test.interims)
    if rate is None or seconds <= 0 or seconds < 0.9 * (numbers.get("time_taken") or 0):
        return
    mean = sum(interim[1] * interim[2] for interim in test.interims) / seconds
    if abs(mean - rate) > _APART * rate:
        yield Caution(Kind.CONTRADICTED, f"rate: {mean:.6g} by the interim results, {rate:.6g} by the summary")


def _facts(test: Test, numbers: Numbers) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"test": test.title}
    protocol = test.selected.get("PROTOCOL") or test.title.split(" ")[0]
    if protocol in ("TCP", "UDP", "SCTP", "DCCP"):
        facts["protocol"] = protocol.lower()
    if not test.transactions and (test.title != "OMNI" or "DIRECTION" in test.selected):
        facts["direction"] = "server_to_client" if _receives(test) else "client_to_server"
    taken = numbers.get("time_taken")
    if taken is not None and taken >= 1:
        facts["duration_s"] = round(taken)  # As asked for: the measured time is a little longer, and never twice the same.
    return facts


def _table(test: Test) -> pa.Table:
    ended, seconds, rates, units = zip(*test.interims, strict=True)
    return table(
        {"ended_s": ("float64", ended), "seconds": ("float64", seconds), "rate": ("float64", rates), "unit": ("string", units)}
    )


FORMATS = (
    Format(
        "netperf",
        "netperf's tables (TCP and UDP streams, request/response) and omni's -k and -o",
        METRICS,
        _START.search,
        _read,
        rate="goodput",
    ),
)
