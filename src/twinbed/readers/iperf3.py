"""The interval records of iperf3's JSON, as numbers by metric, and the table ``intervals``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NotRequired, TypeAlias, TypedDict

if TYPE_CHECKING:
    import pyarrow as pa

SHORT = 0.5
"""Intervals shorter than this share of the longest are left out of means over intervals: the last may be a sliver."""

IMPOSSIBLE = 1.25
"""Largest ratio of a stream's rate of arrival to its rate of sending: only data that waited at the start adds to it."""


class Stream(TypedDict):
    """One stream in an interval. Members of only TCP or only UDP are there for that protocol."""

    rtt: int
    snd_cwnd: int
    out_of_order: NotRequired[int]
    jitter_ms: float
    packets: int


class Sum(TypedDict):
    """All streams in an interval."""

    start: float
    seconds: float
    bytes: int
    bits_per_second: float
    omitted: bool
    retransmits: NotRequired[int]
    packets: NotRequired[int]
    lost_packets: NotRequired[int]
    jitter_ms: NotRequired[float]


class Interval(TypedDict):
    sum: Sum
    streams: Sequence[Stream]


class Cpu(TypedDict):
    host_total: NotRequired[float]
    remote_total: NotRequired[float]


class End(TypedDict):
    cpu_utilization_percent: NotRequired[Cpu]


Intervals: TypeAlias = Sequence[Interval]


class Server(TypedDict):
    """The server's report, as the client fetched it."""

    intervals: Intervals


class Report(TypedDict):
    """The client's report; where it failed, ``error`` alone."""

    intervals: Intervals
    server_output_json: Server
    end: End
    error: NotRequired[str]


def possible(sent: Intervals, received: Intervals) -> bool:
    """Return whether the server's clock ran while the stream arrived."""

    def rate(intervals: Intervals) -> float:
        return math.fsum(interval["sum"]["bytes"] for interval in intervals) / math.fsum(
            interval["sum"]["seconds"] for interval in intervals
        )

    return rate(received) <= IMPOSSIBLE * rate(sent)


def counted_intervals(intervals: Intervals) -> Intervals:
    """Return the intervals that are not omitted and have a length."""
    return [interval for interval in intervals if not interval["sum"]["omitted"] and interval["sum"]["seconds"] > 0]


def numbers(sent: Intervals, received: Intervals, end: End, *, udp: bool) -> Iterator[tuple[str, float]]:
    """Yield metric -> number, of the intervals that each end counted, and of the report's end."""
    cpu: Cpu = end.get("cpu_utilization_percent", {})
    if "host_total" in cpu:
        yield "sender_cpu_share", cpu["host_total"] / 100
    if "remote_total" in cpu:
        yield "receiver_cpu_share", cpu["remote_total"] / 100
    if not sent or not received:
        return
    arrived, handed = (math.fsum(interval["sum"]["bytes"] for interval in counted) for counted in (received, sent))
    took, sending = (math.fsum(interval["sum"]["seconds"] for interval in counted) for counted in (received, sent))
    yield "received_bytes", arrived
    yield "goodput", 8 * arrived / took
    yield "sent_bytes", handed
    yield "send_rate", 8 * handed / sending
    yield "time_taken", took
    rates = [interval["sum"]["bits_per_second"] for interval in _long(received)]
    if len(rates) > 1:
        yield "goodput_sd", stdev(rates)
    if udp:
        yield from _datagrams(sent, received, 8 * handed / sending)
    else:
        yield from _tcp(sent)


def _tcp(sent: Intervals) -> Iterator[tuple[str, float]]:
    yield "tcp_retransmissions", math.fsum(interval["sum"]["retransmits"] for interval in sent)
    streams = [stream for interval in _long(sent) for stream in interval["streams"]]
    yield "tcp_rtt_mean", fmean(stream["rtt"] for stream in streams) * 1e-6
    yield "tcp_cwnd_mean", fmean(stream["snd_cwnd"] for stream in streams)


def _datagrams(sent: Intervals, received: Intervals, rate: float) -> Iterator[tuple[str, float]]:
    """Yield numbers of datagrams. The server's ``packets`` are those that arrived or were missed."""
    went = math.fsum(interval["sum"]["packets"] for interval in sent)
    missed = math.fsum(interval["sum"]["lost_packets"] for interval in received)
    came = math.fsum(interval["sum"]["packets"] for interval in received) - missed
    yield "sent_datagrams", went
    yield "received_datagrams", came
    yield "lost_datagrams", missed
    if came + missed > 0:
        lost = missed / (came + missed)
        yield "loss", lost
        yield "effective_throughput", (1 - lost) * rate
    orders = [stream["out_of_order"] for interval in received for stream in interval["streams"] if "out_of_order" in stream]
    if orders:
        yield "out_of_order_datagrams", math.fsum(orders)
    jitters = [stream["jitter_ms"] for interval in _long(received) for stream in interval["streams"] if stream["packets"]]
    if jitters:
        yield "interarrival_jitter", fmean(jitters) * 1e-3


def _long(intervals: Intervals) -> Intervals:
    """Return the intervals without slivers."""
    longest = max(interval["sum"]["seconds"] for interval in intervals)
    return [interval for interval in intervals if interval["sum"]["seconds"] >= SHORT * longest]


def interval_row(host: str, end: str, interval: Interval) -> dict[str, object]:
    """Return a row of the table ``intervals``."""
    total = interval["sum"]
    jitter = total.get("jitter_ms")
    return {
        "host": host,
        "end": end,
        "start_s": total["start"],
        "seconds": total["seconds"],
        "bytes": total["bytes"],
        "retransmissions": total.get("retransmits"),
        "datagrams": total.get("packets"),
        "lost_datagrams": total.get("lost_packets"),
        "jitter_s": None if jitter is None else jitter * 1e-3,
    }


def interval_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    import pyarrow as pa

    whole, real = pa.int64(), pa.float64()
    kinds = {
        "host": pa.string(),
        "end": pa.string(),
        "start_s": real,
        "seconds": real,
        "bytes": whole,
        "retransmissions": whole,
        "datagrams": whole,
        "lost_datagrams": whole,
        "jitter_s": real,
    }
    return pa.Table.from_pylist(list(rows), schema=pa.schema(list(kinds.items())))
