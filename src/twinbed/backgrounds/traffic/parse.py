"""What wrk and iperf3 said of the background traffic that they carried, as values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinbed import _core
from twinbed.backgrounds.traffic.params import TrafficParams
from twinbed.backgrounds.traffic.plan import HTTP_REPORT, TCP_REPORT, UDP_REPORT
from twinbed.model.clients import total
from twinbed.model.metric import Layer, Metric, Value
from twinbed.model.plugin import Extracted

HTTP = Metric("background_http_rate", "1/s", Layer.APPLICATION, "HTTP requests a second of the background traffic")
TCP = Metric("background_tcp_goodput", "bit/s", Layer.APPLICATION, "payload bits a second of background TCP that arrived")
UDP = Metric("background_udp_goodput", "bit/s", Layer.APPLICATION, "payload bits a second of background UDP that arrived")
LOSS = Metric("background_udp_loss", "1", Layer.APPLICATION, "share of the background's UDP datagrams that did not arrive")
METRICS = (HTTP, TCP, UDP, LOSS)


@dataclass(frozen=True, slots=True)
class Interval:
    """What the receiving iperf3 counted in one interval, of all streams; datagrams of UDP only."""

    seconds: float
    bytes: float
    datagrams: float = 0.0
    """Those that arrived and those that were missed."""
    lost: float = 0.0


def read(params: TrafficParams, artifacts: Path) -> Extracted:
    """Values of each place that counted, and of all together (host empty). Null where a tool was killed before it said
    anything. Raises OSError, ValueError or LookupError where a report is not there or not what the tool writes."""
    found: list[Value] = []
    if params.http:
        rates = {file.parent.name: _requests_per_second(file) for file in _files(artifacts, HTTP_REPORT)}
        found += _values(HTTP, rates, total)
    if params.tcp:
        goodputs = {file.parent.name: _goodput(_intervals(file)) for file in _files(artifacts, TCP_REPORT)}
        found += _values(TCP, goodputs, total)
    if params.udp:
        counted = {file.parent.name: _intervals(file) for file in _files(artifacts, UDP_REPORT)}
        found += _values(UDP, {host: _goodput(each) for host, each in counted.items()}, total)
        loss = _loss([interval for each in counted.values() for interval in each]) if all(counted.values()) else None
        found += _values(LOSS, {host: _loss(each) for host, each in counted.items()}, lambda _: loss)
    return Extracted(found)


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


def _intervals(file: Path) -> Sequence[Interval]:
    """Each that has a length, once: iperf 3.12 repeats the last where its client ended first. None where it wrote nothing."""
    text = file.read_text(errors="replace")
    if not text.strip():
        return []
    try:
        counted = {each["sum"]["start"]: each["sum"] for each in json.loads(text)["intervals"]}
        found = [_interval(each, file.name == UDP_REPORT) for each in counted.values()]
    except ValueError as error:
        raise ValueError(f"{file.parent.name}/{file.name}: {error}: {text[-200:]!r}") from None
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file.parent.name}/{file.name}: not intervals of iperf3's: {error}: {text[:200]!r}") from None
    return [each for each in found if each.seconds > 0]


def _interval(counted: Mapping[str, Any], udp: bool) -> Interval:
    keys = ("seconds", "bytes", *(("packets", "lost_packets") if udp else ()))
    numbers = [float(counted[key]) for key in keys]
    if not all(0 <= number < math.inf for number in numbers):
        raise ValueError(f"an interval has {dict(zip(keys, numbers, strict=True))}")
    return Interval(*numbers)


def _goodput(intervals: Sequence[Interval]) -> float | None:
    seconds = math.fsum(each.seconds for each in intervals)
    return 8 * math.fsum(each.bytes for each in intervals) / seconds if seconds else None


def _loss(intervals: Sequence[Interval]) -> float | None:
    datagrams = math.fsum(each.datagrams for each in intervals)
    return math.fsum(each.lost for each in intervals) / datagrams if datagrams else None
