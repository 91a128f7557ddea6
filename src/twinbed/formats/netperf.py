"""netperf's text: the classic tables of stream and request/response tests, and omni's selected outputs of ``-k`` and ``-o``.

Streams give ``goodput`` (what the receiver got, of UDP; of TCP what netperf calls throughput), request/response tests
``requests_per_second`` and, where they were selected, times of transactions.  Rates are in bit/s by the unit of the heading;
netperf's bytes have prefixes of 2^10 (-f K, M, G), its bits of 10^3.  CPU utilisation is of the client's and the server's whole
host.  Each test of a file is a measurement.

Table ``intervals``: the interim results of ``-D``: ``ended_s`` (since 1970), ``seconds``, ``rate``, ``unit``.

Limits: output without headings (-P 0) and the tables of ``-O`` are refused: nothing in them says what a number is.
Source: netperf's manual, "Using Netperf to Measure ..." and "Omni Output Selectors".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinbed.instruments.counters.metrics import METRICS as COUNTERS
from twinbed.model.caution import Caution, Kind
from twinbed.model.format import Flaw, FormatError, Reading, Source
from twinbed.model.metric import Metric, Value
from twinbed.reading.figures import real
from twinbed.workloads.http.metrics import METRICS as HTTP
from twinbed.workloads.iperf3.metrics import METRICS as IPERF3

if TYPE_CHECKING:
    import pyarrow as pa

_HEADER = re.compile(r"(?:MIGRATED )?([A-Za-z0-9/ ]{2,60}?) TEST(?: from |\b)(.*)")
_START = re.compile(
    rb"^(?:MIGRATED )?(?:(?:TCP|UDP|SCTP|DCCP|OMNI|XTI|STREAM|DG|SOCKET)[A-Za-z0-9/ ]{0,50}) TEST\b", re.MULTILINE
)
_TITLE = re.compile(r"(?:TCP|UDP|SCTP|DCCP|OMNI|XTI|STREAM|DG|SOCKET)\b")
_SELECTED = re.compile(r"([A-Z][A-Z0-9_]{2,60})=(.*)")
_INTERIM = re.compile(r"Interim result:\s+(\S+) (\S+) over (\S+) seconds ending at (\S+)")
_RATE = re.compile(r"(?:10\^([0369])bits|([KMG]?)Bytes)/s(?:ec)?\b")
_ERROR = re.compile(r"\w+: .*\berror\b", re.IGNORECASE)
_TARGET = re.compile(r".*? to (\S+)")
_LABELS = {
    "remote bytes received": "REMOTE_BYTES_RECVD",
    "local bytes received": "LOCAL_BYTES_RECVD",
    "local transport retransmissions": "LOCAL_TRANSPORT_RETRANS",
    "remote transport retransmissions": "REMOTE_TRANSPORT_RETRANS",
    "transaction rate tran/s": "TRANSACTION_RATE",
}
"""Of ``-o``, where they are not the selector's name in words."""
_UNITS_OF_LABELS = re.compile(r" (?:\(sec\)|microseconds|%)$")
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
    *(metric for metric in IPERF3 if metric.name in _FROM_IPERF3),
    *(metric for metric in HTTP if metric.name in _FROM_HTTP),
    *(metric for metric in COUNTERS if metric.name == "cpu_busy_share"),
)
_UNITS = {metric.name: metric.unit for metric in METRICS}
_APART = 0.1
"""Share by which interim results may miss the whole: netperf's interims end a little before it does."""

Numbers = dict[str, float | None]


@dataclass
class _Test:
    line: int
    title: str
    about: str
    rows: list[tuple[int, list[float]]] = field(default_factory=list)
    """(line, numbers) of the lines that hold numbers alone."""
    selected: dict[str, str] = field(default_factory=dict)
    heading: str = ""
    interims: list[tuple[float, float, float, str]] = field(default_factory=list)
    """(ended, seconds, rate, unit)"""
    warnings: list[str] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)

    @property
    def transactions(self) -> bool:
        return "response" in self.title.lower() or self.selected.get("THROUGHPUT_UNITS") == "Trans/s"


class Netperf:
    """The format."""

    name = "netperf"
    summary = "netperf's tables (TCP and UDP streams, request/response) and omni's -k and -o"
    metrics: Sequence[Metric] = METRICS
    work = ""
    rate = "goodput"

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Mapping[str, Any]) -> Sequence[Reading]:
        tests = _tests(source.text().split("\n"))
        if not tests:
            raise FormatError("no heading of a netperf test")
        readings = [reading for test in tests if (reading := _reading(test)) is not None]
        if not readings:
            said = next((warning for test in tests for warning in test.warnings), "")
            raise FormatError(f"no result that is understood{': ' + said if said else ''}", tests[0].line)
        return readings


def _tests(lines: Sequence[str]) -> list[_Test]:
    tests: list[_Test] = []
    labels: list[str] = []
    for number, line in enumerate(lines, start=1):
        header = _HEADER.match(line)
        if header and _TITLE.match(header[1]):
            tests.append(_Test(number, header[1], header[2]))
            labels = []
        elif tests and line.strip():
            labels = _line(tests[-1], number, line.strip(), labels)
    return tests


def _line(test: _Test, number: int, line: str, labels: list[str]) -> list[str]:
    """Takes a line in; gives the labels that the next one is to be read by."""
    if interim := _INTERIM.match(line):
        _interim(test, number, interim)
    elif selected := _SELECTED.fullmatch(line):
        test.selected.setdefault(selected[1], selected[2])
    elif labels:
        found = _cells(line)
        if len(found) == len(labels):
            test.selected |= dict(zip(labels, found, strict=True))
        else:
            test.flaws.append(Flaw(f"{len(found)} values for {len(labels)} labels", number))
    elif "," in line and line.lower().startswith(
        ("throughput,", "elapsed", "local ", "remote ", "protocol", "direction", "command")
    ):
        return [_selector(label) for label in _cells(line)]
    elif line.startswith(("!!!", "netperf:")) or _ERROR.match(line):
        test.warnings.append(line.lstrip("! "))
    elif line[0].isdecimal():
        row = [real(word) for word in line.split()]
        if None in row:
            test.flaws.append(Flaw(f"cannot be read: {line[:80]}", number))
        else:
            test.rows.append((number, [each for each in row if each is not None]))
    else:
        test.heading += f"{line}\n"
    return []


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _selector(label: str) -> str:
    said = label.strip().lower()
    return _LABELS.get(said) or _UNITS_OF_LABELS.sub("", said).upper().replace(" ", "_")


def _interim(test: _Test, number: int, found: re.Match[str]) -> None:
    rate, seconds, ended = (real(found[at]) for at in (1, 3, 4))
    scale = 1.0 if found[2] == "Trans/s" else _scale(found[2])
    if rate is None or seconds is None or ended is None or scale is None:
        test.flaws.append(Flaw(f"cannot be read: {found[0][:80]}", number))
        return
    test.interims.append((ended, seconds, rate * scale, "1/s" if found[2] == "Trans/s" else "bit/s"))


def _scale(unit: str) -> float | None:
    """bit/s in one of the unit."""
    found = _RATE.search(unit)
    if found is None:
        return None
    return 10.0 ** int(found[1]) if found[1] else 8.0 * 1024 ** ("", "K", "M", "G").index(found[2])


def _reading(test: _Test) -> Reading | None:
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
    values = [Value(name, number, _UNITS[name]) for name, number in numbers.items() if not name.startswith("cpu_")]
    for host in ("client", "server"):
        share = numbers.get(f"cpu_{host}")
        if share is not None and share >= 0:  # netperf's -1: not measured.
            values.append(Value("cpu_busy_share", share / 100, "1", host))
    cautions += _apart(test, numbers)
    tables = {"intervals": _table(test)} if test.interims else {}
    started = test.interims[0][0] - test.interims[0][1] if test.interims else None
    return Reading(values, tables, cautions, test.flaws, _facts(test, numbers), started)


def _unsure(test: _Test) -> bool:
    return len(test.warnings) > 1 and "confidence" in test.warnings[1]


def _of_selected(test: _Test) -> Numbers:
    numbers: Numbers = {}

    def number(key: str, scale: float | None = 1.0) -> float | None:
        text = test.selected.get(key)
        found = None if text is None else real(text.strip())
        if text is not None and found is None:
            test.flaws.append(Flaw(f"{key} is no number: {text[:40]}", test.line))
        return None if found is None or scale is None else found * scale

    unit = test.selected.get("THROUGHPUT_UNITS", "")
    if test.transactions:
        numbers["requests_per_second"] = number("THROUGHPUT")
    else:
        scale = _scale(unit)
        if scale is None and "THROUGHPUT" in test.selected:
            test.flaws.append(Flaw(f"THROUGHPUT without its unit: {unit[:40] or 'select THROUGHPUT_UNITS too'}", test.line))
        numbers["goodput"] = number("THROUGHPUT", scale)
        if "LOCAL_SEND_THROUGHPUT" in test.selected:
            numbers["send_rate"] = number("LOCAL_SEND_THROUGHPUT", scale)
        sender, receiver = ("REMOTE", "LOCAL") if _receives(test) else ("LOCAL", "REMOTE")
        numbers |= {"sent_bytes": number(f"{sender}_BYTES_SENT"), "received_bytes": number(f"{receiver}_BYTES_RECVD")}
        numbers["tcp_retransmissions"] = number(f"{sender}_TRANSPORT_RETRANS")
    for key, name in _TIMES.items():
        numbers[f"total_time_{name}"] = number(key, 1e-6)
    numbers |= {"time_taken": number("ELAPSED_TIME"), "cpu_client": number("LOCAL_CPU_UTIL")}
    numbers["cpu_server"] = number("REMOTE_CPU_UTIL")
    return {name: each for name, each in numbers.items() if each is not None or name in ("goodput", "requests_per_second")}


def _receives(test: _Test) -> bool:
    return "MAERTS" in test.title or test.selected.get("DIRECTION") == "Receive"


def _of_stream(test: _Test) -> Numbers:
    """Receive and send socket's size, message's size, seconds, throughput, and with -c -C the CPU of both."""
    scale = _scale(test.heading)
    row = next((row for _, row in test.rows if len(row) in (5, 9)), None)
    if row is None or scale is None:
        return {}
    numbers: Numbers = {"goodput": row[4] * scale, "time_taken": row[3]}
    if len(row) == 9:
        numbers |= {"cpu_client": row[5], "cpu_server": row[6]}
    return numbers


def _of_transactions(test: _Test) -> Numbers:
    """Sockets' sizes, the request's and the answer's, seconds, rate, and with -c -C the CPU of both."""
    row = next((row for _, row in test.rows if len(row) in (6, 10)), None)
    if row is None:
        return {}
    numbers: Numbers = {"requests_per_second": row[5], "time_taken": row[4]}
    if len(row) == 10:
        numbers |= {"cpu_client": row[6], "cpu_server": row[7]}
    return numbers


def _of_datagrams(test: _Test, cautions: list[Caution]) -> Numbers:
    """What was sent (socket's size, message's size, seconds, sent, failed, rate) and below it what arrived."""
    scale = _scale(test.heading)
    sent = next((row for _, row in test.rows if len(row) in (6, 8)), None)
    came = next((row for _, row in test.rows if len(row) in (4, 6) and row is not sent), None)
    if sent is None or scale is None:
        return {}
    numbers: Numbers = {"send_rate": sent[5] * scale, "time_taken": sent[2], "sent_datagrams": sent[3]}
    numbers |= {"goodput": None, "received_datagrams": None, "lost_datagrams": None, "loss": None}
    if len(sent) == 8:
        numbers["cpu_client"] = sent[6]
    if came is None:
        test.flaws.append(Flaw("no line of what arrived", test.line))
        return numbers
    numbers |= {"goodput": came[3] * scale, "received_datagrams": came[2]}
    if came[2] <= sent[3]:
        numbers["lost_datagrams"] = sent[3] - came[2]
        numbers["loss"] = (sent[3] - came[2]) / sent[3] if sent[3] else None
    if len(came) == 6:
        numbers["cpu_server"] = came[4]
    cautions += _miscounted("sent", sent[3], sent, sent[5] * scale, sent[2], scale)
    cautions += _miscounted("received", came[2], sent, came[3] * scale, came[1], scale)
    return numbers


def _miscounted(
    what: str, messages: float, sent: Sequence[float], rate: float, seconds: float, scale: float
) -> Iterator[Caution]:
    """Rates are printed to a hundredth of the unit (-f g: to a tenth), seconds to a hundredth."""
    if seconds <= 0:
        return
    counted = 8 * messages * sent[1] / seconds
    if abs(counted - rate) > (0.005 / seconds + 0.002) * counted + 0.1 * scale:
        yield Caution(Kind.CONTRADICTED, f"{what}: {counted:.6g} bit/s by messages and time, {rate:.6g} bit/s by the rate")


def _apart(test: _Test, numbers: Numbers) -> Iterator[Caution]:
    said = numbers.get("goodput") or numbers.get("requests_per_second")
    seconds = sum(each[1] for each in test.interims)
    if said is None or seconds <= 0 or seconds < 0.9 * (numbers.get("time_taken") or 0):
        return
    mean = sum(each[1] * each[2] for each in test.interims) / seconds
    if abs(mean - said) > _APART * said:
        yield Caution(Kind.CONTRADICTED, f"rate: {mean:.6g} by the interim results, {said:.6g} by the summary")


def _facts(test: _Test, numbers: Numbers) -> dict[str, str | int | float | bool]:
    facts: dict[str, str | int | float | bool] = {"test": test.title}
    protocol = test.selected.get("PROTOCOL") or test.title.split(" ")[0]
    if protocol in ("TCP", "UDP", "SCTP", "DCCP"):
        facts["protocol"] = protocol.lower()
    if target := _TARGET.match(test.about):
        facts["server"] = target[1][:100]
    if not test.transactions and (test.title != "OMNI" or "DIRECTION" in test.selected):
        facts["direction"] = "server_to_client" if _receives(test) else "client_to_server"
    taken = numbers.get("time_taken")
    if taken is not None:
        facts["duration_s"] = taken
    return facts


def _table(test: _Test) -> pa.Table:
    import pyarrow as pa

    ended, seconds, rates, units = zip(*test.interims, strict=True)
    columns = {"ended_s": ended, "seconds": seconds, "rate": rates}
    return pa.table({**{name: pa.array(cells, pa.float64()) for name, cells in columns.items()}, "unit": pa.array(units)})


netperf = Netperf()
