"""sockperf's text: ping-pong, under-load and throughput tests, of the client.

Ping-pong and under-load tests give round-trip times.  sockperf's latency is half a round trip and is doubled here; with
``--full-rtt`` it prints round trips.  Times are in seconds, of messages that were answered, within the valid duration.
Throughput tests give the data that was sent, not the data that arrived.  sockperf's MBps and Mbps have a mega of 2^20.  So the
rate in bit/s is computed from messages and their size where the size is printed.

Several servers in one test have each a host of its own, ``server0`` and on; the run as a whole then has no value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import chosen, count, real, unread, values
from twinbed.imports.text.probing import COUNTS, ROUND_TRIP, RTT_MIN, RTT_SD, loss
from twinbed.metrics.iperf3 import METRICS as IPERF3
from twinbed.metrics.metric import Layer, Metric, Value
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

_PERCENTILES = {"25": "25", "75": "75", "90": "90", "99": "99", "99.9": "99_9", "99.99": "99_99", "99.999": "99_999"}
"""Percentiles other than the median, as printed and in a metric's name."""
METRICS = (
    *(metric for metric in ROUND_TRIP if metric.name != "probe_rtt_p95"),
    *(
        Metric(f"probe_rtt_p{name}", "s", Layer.NETWORK, f"{share}th percentile of the round-trip times of probes")
        for share, name in _PERCENTILES.items()
    ),
    *COUNTS,
    *chosen(IPERF3, ["send_rate", "time_taken"]),
    Metric("sent_messages", "1", Layer.APPLICATION, "messages that were handed to the kernel", extensive=True),
    Metric("messages_per_second", "1/s", Layer.APPLICATION, "messages handed to the kernel per second"),
)
_START = re.compile(rb"^sockperf: (?:\x1b\[[0-9;]*m)?(?:== version #|\[Total Run\]|Total of \d+ messages)", re.MULTILINE)
_VERSION = re.compile(r"sockperf: == version #(\S+)")
_TARGET = re.compile(r"\[ *\d+\] IP = \S+\s+PORT = +\d+ +# (TCP|UDP)")
_VALID = re.compile(r"sockperf: \[Valid Duration\] RunTime=(\S+) sec; SentMessages=(\d+); ReceivedMessages=(\d+)")
_SERVER = re.compile(r"sockperf: =+ Printing statistics for Server No: \d")
_AVERAGE = re.compile(r"sockperf: =+> avg-(latency|lat|rtt)= *(\S+) \(std-dev=([^ ,)]+)")
_FATES = re.compile(r"sockperf: # dropped (?:messages|packets) = (\d+); # duplicated \w+ = (\d+); # out-of-order \w+ = (\d+)")
_OBSERVED = re.compile(r"sockperf: ---> (?:<(MAX|MIN)> observation|percentile (\S+)) = +(\S+)")
_SENT = re.compile(r"sockperf: Total of (\d+) messages sent in (\S+) sec")
_RATE = re.compile(r"sockperf: Summary: Message Rate is (\S+) \[msg/sec\]")
_BANDWIDTH = re.compile(r"sockperf: Summary: BandWidth is (\S+) (MBps|GBps) \(")
_SIZE = re.compile(r"using msg-size=(\d{1,9})\b")
_NOTABLE = re.compile(r"sockperf: (?:ERROR|No messages were received).*")
_MICROSECOND = 1e-6
_APART = 0.001


@dataclass
class _Server:
    host: str
    factor: float | None = None
    """Factor from a printed time to a round trip; None until it is known."""
    numbers: dict[str, float | None] = field(default_factory=dict)


@dataclass
class _Test:
    facts: dict[str, Fact] = field(default_factory=dict)
    servers: list[_Server] = field(default_factory=list)
    sent: dict[str, float | None] = field(default_factory=dict)
    size: int | None = None
    rate: float | None = None
    message: str = ""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    tests = [_Test()]
    for number, line in enumerate(source.text().split("\n"), start=1):
        if _VERSION.match(line) and (tests[-1].servers or tests[-1].sent):
            tests.append(_Test())
        _line(tests[-1], number, line)
    measurements = [_measurement(test) for test in tests if test.servers or test.sent]
    if not measurements:
        raise FormatError(f"has no result of sockperf{': ' + tests[-1].message if tests[-1].message else ''}")
    return measurements


def _line(test: _Test, number: int, line: str) -> None:
    if match := _VERSION.match(line):
        test.facts["version"] = match[1][:40]
    elif match := _TARGET.match(line):
        test.facts["protocol"] = match[1].lower()
    elif _NOTABLE.match(line):
        test.message = line[:200]
    elif _SERVER.match(line):
        test.servers.append(_Server(f"server{len(test.servers)}"))
    elif match := _VALID.match(line):
        _valid(test, number, match)
    elif match := _SENT.match(line):
        test.sent |= {"sent_messages": count(match[1]), "time_taken": _number(test, number, match[2])}
    elif match := _RATE.match(line):
        test.sent["messages_per_second"] = _number(test, number, match[1])
    elif match := _BANDWIDTH.match(line):
        bandwidth = _number(test, number, match[1])
        test.rate = None if bandwidth is None else bandwidth * 8 * 2.0 ** (20 if match[2] == "MBps" else 30)
    elif test.servers and line.startswith("sockperf: "):
        _statistic(test, test.servers[-1], number, line)
    if match := _SIZE.search(line):
        test.size = int(match[1])


def _valid(test: _Test, number: int, match: re.Match[str]) -> None:
    numbers = {
        "time_taken": _number(test, number, match[1]),
        "probes_sent": count(match[2]),
        "probes_received": count(match[3]),
    }
    if test.servers:
        test.servers[-1].numbers |= numbers
    else:
        test.diagnostics.append(Diagnostic("has a line of valid duration without a server", number))


def _number(test: _Test, number: int, text: str, factor: float = 1.0) -> float | None:
    value = real(text)
    if value is None:
        test.diagnostics.append(Diagnostic(f"has no number: {text[:40]}", number))
        return None
    return value * factor


def _statistic(test: _Test, server: _Server, number: int, line: str) -> None:
    if match := _AVERAGE.match(line):
        server.factor = 1.0 if match[1] == "rtt" else 2.0
        scale = server.factor * _MICROSECOND
        server.numbers["probe_rtt_mean"] = _number(test, number, match[2], scale)
        server.numbers[RTT_SD.name] = _number(test, number, match[3], scale)
    elif match := _FATES.match(line):
        dropped, duplicated, disordered = (count(match[at]) for at in (1, 2, 3))
        came = server.numbers.get("probes_received")
        known = dropped is not None and came is not None
        server.numbers["probe_loss"] = loss(dropped, dropped + came) if known else None  # type: ignore[operator]
        server.numbers |= {"probe_duplicates": duplicated, "probes_reordered": disordered}
    elif (match := _OBSERVED.match(line)) and server.factor is not None:
        name = _observed(match)
        if name is not None:
            server.numbers[name] = _number(test, number, match[3], server.factor * _MICROSECOND)
    elif "--->" in line or "avg-" in line or "# dropped" in line:
        test.diagnostics.append(unread(line, number))


def _observed(match: re.Match[str]) -> str | None:
    if match[1]:
        return "probe_rtt_max" if match[1] == "MAX" else RTT_MIN.name
    share = match[2].rstrip("0").rstrip(".") if "." in match[2] else match[2]
    if share == "50":
        return "probe_rtt_median"
    return f"probe_rtt_p{_PERCENTILES[share]}" if share in _PERCENTILES else None


def _measurement(test: _Test) -> Measurement:
    of_test: list[Value] = []
    for server in test.servers:
        host = server.host if len(test.servers) > 1 else ""
        of_test += values(server.numbers, METRICS, host)
    if test.sent and not test.servers:
        of_test += values(test.sent | {"send_rate": _send_rate(test)}, METRICS)
    if test.size is not None:
        test.facts["message_bytes"] = test.size
    return Measurement(of_test, {}, test.cautions, test.diagnostics, test.facts)


def _send_rate(test: _Test) -> float | None:
    messages = test.sent.get("messages_per_second")
    if messages is None or test.size is None:
        return test.rate
    by_messages = 8 * messages * test.size
    if test.rate is not None and abs(by_messages - test.rate) > _APART * test.rate:
        detail = f"send rate: {by_messages:.6g} bit/s by messages and their size, {test.rate:.6g} bit/s by the bandwidth"
        test.cautions.append(Caution(Kind.CONTRADICTED, detail))
    return by_messages


FORMATS = (Format("sockperf", "sockperf's ping-pong, under-load and throughput tests", METRICS, _START.search, _read),)
