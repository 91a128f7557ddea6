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

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import real
from twinbed.imports.text.netperf_text import Test, scale, tests
from twinbed.metrics.counters import METRICS as COUNTERS
from twinbed.metrics.http import METRICS as HTTP
from twinbed.metrics.iperf3 import METRICS as IPERF3
from twinbed.metrics.metric import Metric, Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

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
    *(metric for metric in IPERF3 if metric.name in _FROM_IPERF3),
    *(metric for metric in HTTP if metric.name in _FROM_HTTP),
    *(metric for metric in COUNTERS if metric.name == "cpu_busy_share"),
)
_UNITS = {metric.name: metric.unit for metric in METRICS}
_APART = 0.1
"""Share by which interim results may miss the whole: netperf's interims end a little before it does."""

Numbers = dict[str, float | None]


class Netperf(Format):
    """The format."""

    name = "netperf"
    summary = "netperf's tables (TCP and UDP streams, request/response) and omni's -k and -o"
    metrics: Sequence[Metric] = METRICS
    rate = "goodput"

    def recognises(self, head: bytes) -> bool:
        return _START.search(head) is not None

    def read(self, source: Source, options: Document) -> Sequence[Measurement]:
        tests_ = tests(source.text().split("\n"))
        if not tests_:
            raise FormatError("no heading of a netperf test")
        measurements = [measurement for test in tests_ if (measurement := _reading(test)) is not None]
        if not measurements:
            first_warning = next((warning for test in tests_ for warning in test.warnings), "")
            why = f": {first_warning}" if first_warning else ": it is cut, or a table of -O, where those of -k and -o are read"
            raise FormatError(f"no result that is understood{why}", tests_[0].line)
        return measurements


def _reading(test: Test) -> Measurement | None:
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
        if share is not None and share >= 0:
            values.append(Value("cpu_busy_share", share / 100, "1", host))
    cautions += _apart(test, numbers)
    tables = {"intervals": _table(test)} if test.interims else {}
    started = test.interims[0][0] - test.interims[0][1] if test.interims else None
    return Measurement(values, tables, cautions, test.diagnostics, _facts(test, numbers), started)


def _unsure(test: Test) -> bool:
    return len(test.warnings) > 1 and "confidence" in test.warnings[1]


def _of_selected(test: Test) -> Numbers:
    numbers: Numbers = {}

    def number(key: str, factor: float | None = 1.0) -> float | None:
        text = test.selected.get(key)
        value = None if text is None else real(text.strip())
        if text is not None and value is None:
            test.diagnostics.append(Diagnostic(f"{key} is no number: {text[:40]}", test.line))
        # netperf's -1: not known.
        return None if value is None or factor is None or value < 0 else value * factor

    unit = test.selected.get("THROUGHPUT_UNITS", "")
    if test.transactions:
        numbers["requests_per_second"] = number("THROUGHPUT")
    else:
        factor = scale(unit)
        if factor is None and "THROUGHPUT" in test.selected:
            test.diagnostics.append(
                Diagnostic(f"THROUGHPUT without its unit: {unit[:40] or 'select THROUGHPUT_UNITS too'}", test.line)
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
    return {name: each for name, each in numbers.items() if each is not None or name in ("goodput", "requests_per_second")}


def _receives(test: Test) -> bool:
    return "MAERTS" in test.title or test.selected.get("DIRECTION") == "Receive"


def _of_stream(test: Test) -> Numbers:
    """Receive and send socket's size, message's size, seconds, throughput, and with -c -C the CPU of both."""
    factor = scale(test.heading)
    row = next((row for _, row in test.rows if len(row) in (5, 9)), None)
    if row is None or factor is None:
        return {}
    numbers: Numbers = {"goodput": row[4] * factor, "time_taken": row[3]}
    if len(row) == 9:
        numbers |= {"cpu_client": row[5], "cpu_server": row[6]}
    return numbers


def _of_transactions(test: Test) -> Numbers:
    """Sockets' sizes, the request's and the answer's, seconds, rate, and with -c -C the CPU of both."""
    row = next((row for _, row in test.rows if len(row) in (6, 10)), None)
    if row is None:
        return {}
    numbers: Numbers = {"requests_per_second": row[5], "time_taken": row[4]}
    if len(row) == 10:
        numbers |= {"cpu_client": row[6], "cpu_server": row[7]}
    return numbers


def _of_datagrams(test: Test, cautions: list[Caution]) -> Numbers:
    """What was sent (socket's size, message's size, seconds, sent, failed, rate) and below it what arrived."""
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
        test.diagnostics.append(Diagnostic("no line of what arrived", test.line))
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
    """Rates are printed to a hundredth of the unit (-f g: to a tenth), seconds to a hundredth."""
    if seconds <= 0:
        return
    by_messages = 8 * messages * sent[1] / seconds
    if abs(by_messages - rate) > (0.005 / seconds + 0.002) * by_messages + 0.1 * factor:
        yield Caution(Kind.CONTRADICTED, f"{what}: {by_messages:.6g} bit/s by messages and time, {rate:.6g} bit/s by the rate")


def _apart(test: Test, numbers: Numbers) -> Iterator[Caution]:
    rate = numbers.get("goodput") or numbers.get("requests_per_second")
    seconds = sum(each[1] for each in test.interims)
    if rate is None or seconds <= 0 or seconds < 0.9 * (numbers.get("time_taken") or 0):
        return
    mean = sum(each[1] * each[2] for each in test.interims) / seconds
    if abs(mean - rate) > _APART * rate:
        yield Caution(Kind.CONTRADICTED, f"rate: {mean:.6g} by the interim results, {rate:.6g} by the summary")


def _facts(test: Test, numbers: Numbers) -> dict[str, str | int | float | bool]:
    facts: dict[str, str | int | float | bool] = {"test": test.title}
    protocol = test.selected.get("PROTOCOL") or test.title.split(" ")[0]
    if protocol in ("TCP", "UDP", "SCTP", "DCCP"):
        facts["protocol"] = protocol.lower()
    if not test.transactions and (test.title != "OMNI" or "DIRECTION" in test.selected):
        facts["direction"] = "server_to_client" if _receives(test) else "client_to_server"
    taken = numbers.get("time_taken")
    if taken is not None and taken >= 1:
        facts["duration_s"] = round(taken)  # As asked for: what was measured is a little more, and never twice the same.
    return facts


def _table(test: Test) -> pa.Table:
    import pyarrow as pa

    ended, seconds, rates, units = zip(*test.interims, strict=True)
    columns = {"ended_s": ended, "seconds": seconds, "rate": rates}
    return pa.table({**{name: pa.array(cells, pa.float64()) for name, cells in columns.items()}, "unit": pa.array(units)})


netperf = Netperf()
