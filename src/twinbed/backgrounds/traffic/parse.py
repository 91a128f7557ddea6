"""What wrk and iperf3 said of the background traffic that they carried, as values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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

Intervals = Sequence[Mapping[str, Any]]


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
        read = {file.parent.name: _intervals(file) for file in _files(artifacts, UDP_REPORT)}
        found += _values(UDP, {host: _goodput(each) for host, each in read.items()}, total)
        together = [interval for each in read.values() for interval in each]
        loss = _loss(together) if all(read.values()) else None
        found += _values(LOSS, {host: _loss(each) for host, each in read.items()}, lambda _: loss)
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


def _intervals(file: Path) -> Intervals:
    """Sums over streams, of each interval that has a length."""
    text = file.read_text(errors="replace")
    if not text.strip():
        return []
    try:
        sums = [each["sum"] for each in json.loads(text)["intervals"]]
        return [each for each in sums if each["seconds"] > 0]
    except ValueError as error:
        raise ValueError(f"{file.parent.name}/{file.name}: not JSON: {error}: {text[-200:]!r}") from None
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file.parent.name}/{file.name}: iperf3 gave no {error}: {text[:200]!r}") from None


def _goodput(intervals: Intervals) -> float | None:
    seconds = math.fsum(each["seconds"] for each in intervals)
    return 8 * math.fsum(each["bytes"] for each in intervals) / seconds if seconds else None


def _loss(intervals: Intervals) -> float | None:
    """The receiver's ``packets`` are those that arrived and those that were missed."""
    went = math.fsum(each["packets"] for each in intervals)
    return math.fsum(each["lost_packets"] for each in intervals) / went if went else None
