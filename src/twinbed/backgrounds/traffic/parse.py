"""What wrk and iperf3 said of the background traffic that they carried, as values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed import _core
from twinbed.backgrounds.traffic.params import TrafficParams
from twinbed.backgrounds.traffic.plan import HTTP_REPORT, TCP_REPORT, UDP_REPORT
from twinbed.contracts.extracted import Extracted
from twinbed.metrics.background import HTTP, LOSS, TCP, UDP
from twinbed.metrics.metric import Metric, Value
from twinbed.readers.clients import total

_INTERVAL = re.compile(
    r"\[ *(?P<stream>\d+)\] +(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+) +sec +\S+ \w+ +(?P<kbit_s>\S+) Kbits/sec"
    r"( +\S+ ms +(?P<lost>-?\d+)/(?P<datagrams>\d+) \(\S+\))? *"
)
_OF_A_STREAM = re.compile(r"\[ *\d+\] +\d.*")
_WHOLE = ("sender", "receiver")


@dataclass(frozen=True, slots=True)
class Received:
    """What a receiving iperf3 counted, of all intervals and streams."""

    bits: float = 0.0
    seconds: float = 0.0
    datagrams: int = 0
    """Those that arrived and those that were missed, by their numbers."""
    lost: int = 0

    @property
    def goodput(self) -> float | None:
        return self.bits / self.seconds if self.seconds else None

    @property
    def loss(self) -> float | None:
        return self.lost / self.datagrams if self.datagrams else None


def read(params: TrafficParams, artifacts: Path) -> Extracted:
    """Values of each place that counted, and of all together (host empty). Null where a tool was killed before it said
    anything. Raises OSError, ValueError or LookupError where a report is not there or not what the tool writes."""
    values: list[Value] = []
    if params.http:
        rates = {file.parent.name: _requests_per_second(file) for file in _files(artifacts, HTTP_REPORT)}
        values += _values(HTTP, rates, total)
    if params.tcp:
        values += _values(TCP, {host: each.goodput for host, each in _received(artifacts, TCP_REPORT).items()}, total)
    if params.udp:
        received = _received(artifacts, UDP_REPORT)
        whole = Received(
            datagrams=sum(each.datagrams for each in received.values()), lost=sum(e.lost for e in received.values())
        )
        losses = {host: each.loss for host, each in received.items()}
        values += _values(UDP, {host: each.goodput for host, each in received.items()}, total)
        values += _values(LOSS, losses, lambda each: None if None in each else whole.loss)
    return Extracted(values)


def _files(artifacts: Path, name: str) -> Sequence[Path]:
    files = sorted(artifacts.glob(f"*/{name}"))
    if not files:
        raise FileNotFoundError(f"no {name} in {artifacts}")
    return files


def _values(
    metric: Metric, places: Mapping[str, float | None], together: Callable[[Sequence[float | None]], float | None]
) -> Iterator[Value]:
    for host, number in places.items():
        yield Value(metric.name, number, metric.unit, host)
    yield Value(metric.name, together(list(places.values())), metric.unit)


def _requests_per_second(file: Path) -> float | None:
    text = file.read_bytes()
    if b"requests in" not in text:
        return None
    report = _core.wrk(text)
    done, taken = report["requests"], report["duration_s"]
    return done / taken if done is not None and taken else None


def _received(artifacts: Path, name: str) -> Mapping[str, Received]:
    return {file.parent.name: _of_server(file) for file in _files(artifacts, name)}


def _bits(kbit_s: str) -> float:
    rate = 1000 * float(kbit_s)
    if not 0 <= rate < math.inf:
        raise ValueError(f"{kbit_s} kbit/s")
    return rate


def _of_server(file: Path) -> Received:
    """Each interval of each stream once: iperf 3.12 repeats the last where its client ended first. A line that was cut short
    when iperf3 ended is left out."""
    text = file.read_text(errors="replace")
    if text and "Server listening on" not in text:
        raise ValueError(f"{file.parent.name}/{file.name}: not what iperf3 -s says: {text[:200]!r}")
    intervals: dict[tuple[str, str], tuple[float, float]] = {}
    datagrams: dict[tuple[str, str], tuple[int, int]] = {}
    for line in text.split("\n")[:-1]:
        if (interval := _INTERVAL.fullmatch(line)) is not None:
            key = interval["stream"], interval["start"]
            datagrams[key] = int(interval["datagrams"] or 0), int(interval["lost"] or 0)
            # A last interval may have no length, and then no rate.
            if (length := float(interval["end"]) - float(interval["start"])) > 0:
                intervals[key] = length, _bits(interval["kbit_s"])
        elif _OF_A_STREAM.fullmatch(line) and not line.rstrip().endswith(_WHOLE):
            raise ValueError(f"{file.parent.name}/{file.name}: not an interval: {line!r}")
    lengths = {start: length for (_, start), (length, _) in intervals.items()}
    return Received(
        math.fsum(length * rate for length, rate in intervals.values()),
        math.fsum(lengths.values()),
        sum(count for count, _ in datagrams.values()),
        sum(lost for _, lost in datagrams.values()),
    )
