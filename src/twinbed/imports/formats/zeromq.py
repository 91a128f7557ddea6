"""Format ``zeromq-perf``: what ZeroMQ's own performance tests print: ``remote_lat`` and ``inproc_lat`` a latency, ``local_thr``
and ``inproc_thr`` a throughput; of libzmq and of bindings that print the same.

Its average latency is half a mean round trip (elapsed time over twice the round trips), as sockperf's, and is doubled here.
Its throughput is the receiver's: Mb are 10^6 bits of messages without ZeroMQ's own frames.  Messages a second are printed as
whole numbers.  Below 1000 a second they are computed from the megabits, which have three decimals, where the size is printed.
Several tests in a text are several measurements.
Source: perf/remote_lat.cpp and perf/local_thr.cpp of libzmq.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from twinbed.contracts.format import Diagnostic, Fact, Format, FormatError, Measurement, Source
from twinbed.imports.text.figures import chosen, head_text, real, unread, values
from twinbed.imports.text.probing import COUNTS, ROUND_TRIP
from twinbed.metrics.iperf3 import METRICS as IPERF3
from twinbed.metrics.metric import Layer, Metric
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import Document

MESSAGES = Metric("messages_received", "1", Layer.APPLICATION, "messages that the receiver waited for", extensive=True)
RATE = Metric(
    "messages_received_per_second", "1/s", Layer.APPLICATION, "messages that the receiver got per second", headline=True
)
METRICS = (
    *chosen(ROUND_TRIP, ["probe_rtt_mean"]),
    *chosen(COUNTS, ["probes_received"]),
    *chosen(IPERF3, ["goodput", "time_taken"]),
    MESSAGES,
    RATE,
)
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_LINES = {
    "size": re.compile(rf"message size: {_NUMBER} \[B\]"),
    "round_trips": re.compile(rf"roundtrip count: {_NUMBER}"),
    "messages": re.compile(rf"message count: {_NUMBER}"),
    "elapsed": re.compile(rf"(?:elapsed time|message elapsed): {_NUMBER}(?: \[s\])?"),
    "latency": re.compile(rf"average latency: {_NUMBER} \[[uµμ]s\]"),
    "rate": re.compile(rf"mean throughput: {_NUMBER} \[msg/s\]"),
    "megabits": re.compile(rf"mean throughput: {_NUMBER} \[Mb/s\]"),
}
_RESULT = re.compile(r"^[ \t]*(?:average latency: [0-9.]+ \[[uµμ]s\]|mean throughput: [0-9.]+ \[(?:msg|Mb)/s\])", re.MULTILINE)
_ERROR = re.compile(r"error in zmq_|message of incorrect size received")
_FEW = 1000
"""Messages a second below which a whole number of them has fewer digits than the megabits."""
_STEP_MEGABITS = 0.0005
_MICROSECOND = 1e-6


@dataclass
class _Test:
    numbers: dict[str, float] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return bool(self.numbers.keys() & {"latency", "rate", "megabits"})


def _recognises(head: bytes) -> bool:
    return (b"average latency: " in head or b"mean throughput: " in head) and _RESULT.search(head_text(head)) is not None


def _read(source: Source, options: Document) -> Sequence[Measurement]:
    tests = [_Test()]
    for number, line in enumerate(source.text().split("\n"), start=1):
        text = line.strip()
        name, match = next(
            ((name, matched) for name, pattern in _LINES.items() if (matched := pattern.fullmatch(text))), ("", None)
        )
        if match is not None:
            if name in tests[-1].numbers or (tests[-1].done and name in ("size", "round_trips", "messages")):
                tests.append(_Test())
            tests[-1].numbers[name] = real(match[1]) or 0.0
        elif text.startswith(("average latency:", "mean throughput:")) or _ERROR.search(text):
            tests[-1].diagnostics.append(unread(text, number))
    done = [test for test in tests if test.done]
    if not done:
        raise FormatError("has no result of ZeroMQ's performance tests")
    failed = [diagnostic for test in tests if not test.done for diagnostic in test.diagnostics]
    return [_measurement(test, [*test.diagnostics, *(failed if test is done[-1] else ())]) for test in done]


def _measurement(test: _Test, diagnostics: Sequence[Diagnostic]) -> Measurement:
    printed = test.numbers
    size = printed.get("size")
    numbers: dict[str, float | None] = {}
    if "latency" in printed:
        numbers["probe_rtt_mean"] = 2 * _MICROSECOND * printed["latency"]
        numbers["probes_received"] = printed.get("round_trips")
    megabits, rate = printed.get("megabits"), printed.get("rate")
    if megabits is not None or rate is not None:
        numbers["goodput"] = 1e6 * megabits if megabits is not None else 8 * size * rate if size and rate else None
        few = rate is None or rate < _FEW
        numbers["messages_received_per_second"] = 1e6 * megabits / (8 * size) if few and megabits and size else rate
        numbers["messages_received"] = printed.get("messages")
    if "elapsed" in printed:
        numbers["time_taken"] = printed["elapsed"]
    facts: dict[str, Fact] = {} if size is None else {"message_bytes": int(size)}
    return Measurement(list(values(numbers, METRICS)), {}, _contradictions(size, rate, megabits), diagnostics, facts)


def _contradictions(size: float | None, rate: float | None, megabits: float | None) -> list[Caution]:
    if size is None or rate is None or megabits is None:
        return []
    by_messages = 8 * size * rate / 1e6
    # The rate may have been rounded up or cut.
    if abs(by_messages - megabits) <= 8 * size / 1e6 + _STEP_MEGABITS:
        return []
    detail = f"goodput: {by_messages:.6g} Mbit/s by messages and their size, {megabits:.6g} Mbit/s as printed"
    return [Caution(Kind.CONTRADICTED, detail)]


FORMATS = (
    Format("zeromq-perf", "latency and throughput as ZeroMQ's own performance tests print them", METRICS, _recognises, _read),
)
