"""iperf3: streams over TCP, datagrams over UDP, and its report.

TCP streams always have bytes to send, up to the rate of ``-b``. Datagrams are sent at the offered rate, or as fast as the
client's CPU makes them; nothing comes back. The report is that of ``iperf3 -J --get-server-output`` (iperf3 3.12), with the
fields that a model can fill.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import TypeVar

from twinbed.model.topology import Link
from twinbed.testbeds.model.clock import Clock, Costs, Cpu
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.tcp import Sender, Tcp

BLOCK_BYTES = 131_072
"""The size of a write to TCP."""
PACING_S = 1e-3
"""The period of iperf3's pacing timer, which lets streams under ``-b`` go on."""
_ENDLESS_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class Sent:
    """One stream in one second."""

    sent_bytes: int
    received_bytes: int
    retransmissions: int
    cwnd_bytes: int
    rtt_s: float


@dataclass(frozen=True, slots=True)
class Flow:
    """Options of iperf3 for TCP."""

    seconds: int
    streams: int
    rate: int | None
    """Rate of each stream, bit/s."""
    block_bytes: int = BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Streamed:
    intervals: list[list[Sent]]
    """Per second, one entry for each stream."""
    client_share: float
    server_share: float


class _Stream:
    sender: Sender

    def __init__(self) -> None:
        self.received_bytes = 0
        self.written_bytes = 0
        self.counted = (0, 0, 0)

    def read(self, size: int) -> None:
        self.received_bytes += size

    def interval(self) -> Sent:
        sender = self.sender
        now = (sender.sent_bytes - sender.retransmitted_bytes, self.received_bytes, sender.retransmitted_packets)
        sent, received, again = (new - old for new, old in zip(now, self.counted, strict=True))
        self.counted = now
        return Sent(sent, received, again, int(sender.cwnd_bytes), sender.rtt_s)


def stream(flow: Flow, link: Link, tcp: Tcp, costs: Costs, chance: Random) -> Streamed:
    """Simulate a whole run over TCP, from the moment at which the connections are made."""
    clock = Clock()
    client, server = (Cpu(clock, costs.wake_s) for _ in range(2))
    forth, back = Direction(link, costs.latency_s, chance), Direction(link, costs.latency_s, chance)
    rtt_s = back.sure(forth.sure(0.0, tcp.syn_bytes), tcp.syn_bytes)
    streams = [_Stream() for _ in range(flow.streams)]
    for sending in streams:
        sending.sender = Sender(
            clock,
            tcp,
            (forth, back),
            (client, server),
            (costs.sending, costs.receiving),
            sending.read,
            lambda: None,
            rtt_s,
        )

    def write_paced() -> None:
        assert flow.rate is not None
        for writer in streams:
            while writer.written_bytes * 8 <= flow.rate * clock.now_s:
                writer.written_bytes += flow.block_bytes
                writer.sender.write(flow.block_bytes)
        clock.at(clock.now_s + PACING_S, write_paced)

    if flow.rate is None:
        for sending in streams:
            clock.at(0.0, sending.sender.write, _ENDLESS_BYTES)
    else:
        clock.at(0.0, write_paced)
    intervals = []
    for second in range(flow.seconds):
        clock.run(second + 1.0, lambda: False)
        intervals.append([sending.interval() for sending in streams])
    return Streamed(intervals, min(client.busy_s / flow.seconds, 1.0), min(server.busy_s / flow.seconds, 1.0))


IP_BYTES, UDP_BYTES = 20, 8
BUFFER_BYTES = 212_992
"""A socket's buffer (net.core.rmem_default)."""
BUFFERED_BYTES = 2304
"""Bytes of the buffer that a packet of up to 1500 bytes takes (truesize: 2048 for the data, 256 for its sk_buff)."""


@dataclass(frozen=True, slots=True)
class Offered:
    """Options of iperf3 for UDP, in bytes and bit/s."""

    seconds: int
    streams: int
    rate: int | None
    payload_bytes: int
    mtu_bytes: int
    frame_overhead_bytes: int
    buffer_bytes: int = BUFFER_BYTES

    @property
    def packets(self) -> int:
        """Return how many IP packets carry one datagram."""
        room = (self.mtu_bytes - IP_BYTES) // 8 * 8
        whole = self.payload_bytes + UDP_BYTES
        return 1 if whole <= self.mtu_bytes - IP_BYTES else math.ceil(whole / room)

    @property
    def frames_bytes(self) -> int:
        return self.payload_bytes + UDP_BYTES + self.packets * (IP_BYTES + self.frame_overhead_bytes)


@dataclass
class Counted:
    """Datagrams of one stream in one second, and the jitter at its end (RFC 3550, 6.4.1)."""

    sent: int = 0
    received: int = 0
    lost: int = 0
    jitter_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Came:
    intervals: list[list[Counted]]
    """Per second, one entry for each stream."""
    client_share: float
    server_share: float


def offer(offered: Offered, link: Link, costs: Costs, chance: Random) -> Came:
    """Simulate a whole run over UDP. iperf3 sends the datagrams due each millisecond, streams in turn."""
    forth = Direction(link, costs.latency_s, chance)
    size, frames = offered.payload_bytes, offered.frames_bytes
    sending_s = costs.sending.segment_s + size * costs.sending.byte_s
    reading_s = costs.receiving.segment_s + size * costs.receiving.byte_s
    most_waiting = max(offered.buffer_bytes // (BUFFERED_BYTES * offered.packets), 1)
    intervals = [[Counted() for _ in range(offered.streams)] for _ in range(offered.seconds)]
    transit_s: list[float | None] = [None] * offered.streams
    jitter_s = [0.0] * offered.streams
    waiting: deque[float] = deque()
    sender_s = reader_s = client_busy_s = server_busy_s = 0.0
    number = 0
    while True:
        turn, which = divmod(number, offered.streams)
        due_s = 0.0 if offered.rate is None else math.ceil(turn * 8 * size / offered.rate / PACING_S) * PACING_S
        sender_s = max(sender_s, due_s) + sending_s
        if sender_s >= offered.seconds:
            break
        number += 1
        client_busy_s += sending_s
        intervals[int(sender_s)][which].sent += 1
        arrival_s = forth.passes(sender_s, frames)
        if arrival_s is not None:
            while waiting and waiting[0] <= arrival_s:
                waiting.popleft()
            if len(waiting) >= most_waiting:
                arrival_s = None
        if arrival_s is None:
            # The server notices the gap when the next datagram arrives.
            intervals[int(sender_s)][which].lost += 1
            continue
        reader_s = max(reader_s, arrival_s) + reading_s
        waiting.append(reader_s)
        if reader_s >= offered.seconds:
            continue
        server_busy_s += reading_s
        took_s = reader_s - sender_s
        before_s = transit_s[which]
        if before_s is not None:
            jitter_s[which] += (abs(took_s - before_s) - jitter_s[which]) / 16
        transit_s[which] = took_s
        counted = intervals[int(reader_s)][which]
        counted.received += 1
        counted.jitter_s = jitter_s[which]
    whole = float(offered.seconds)
    return Came(intervals, client_busy_s / whole, server_busy_s / whole)


T = TypeVar("T")
_Row = Mapping[str, object]


def of_tcp(streamed: Streamed, omit_s: int) -> str:
    def sent(interval: Sent) -> dict[str, float]:
        return {
            "bytes": interval.sent_bytes,
            "retransmits": interval.retransmissions,
            "snd_cwnd": interval.cwnd_bytes,
            "rtt": round(interval.rtt_s * 1e6),
        }

    return _report(
        _intervals(streamed.intervals, sent, ("bytes", "retransmits"), omit_s),
        _intervals(streamed.intervals, lambda interval: {"bytes": interval.received_bytes}, ("bytes",), omit_s),
        streamed.client_share,
        streamed.server_share,
    )


def of_udp(came: Came, offered: Offered, omit_s: int) -> str:
    size = offered.payload_bytes
    sent = _intervals(
        came.intervals, lambda interval: {"bytes": interval.sent * size, "packets": interval.sent}, ("bytes", "packets"), omit_s
    )
    received = _intervals(
        came.intervals,
        lambda interval: {
            "bytes": interval.received * size,
            "packets": interval.received + interval.lost,
            "lost_packets": interval.lost,
            "jitter_ms": interval.jitter_s * 1000,
            "out_of_order": 0,
        },
        ("bytes", "packets", "lost_packets"),
        omit_s,
        mean="jitter_ms",
    )
    return _report(sent, received, came.client_share, came.server_share)


def _intervals(
    seconds: Sequence[Sequence[T]],
    row: Callable[[T], dict[str, float]],
    summed: Sequence[str],
    omit_s: int,
    mean: str | None = None,
) -> list[_Row]:
    """Return one row a second. Omitted seconds are counted from 0, and so are the seconds after them."""
    intervals: list[_Row] = []
    for number, of_streams in enumerate(seconds):
        omitted = number < omit_s
        start = number if omitted else number - omit_s
        span = {"start": start, "end": start + 1, "seconds": 1}
        rows = [{**row(interval), "omitted": omitted} for interval in of_streams]
        together: dict[str, object] = {name: sum(values[name] for values in rows) for name in summed}
        if mean is not None:
            together[mean] = fmean(values[mean] for values in rows)
        streams = [{**span, **values, "bits_per_second": 8 * values["bytes"]} for values in rows]
        total = {**span, **together, "bits_per_second": 8 * sum(values["bytes"] for values in rows), "omitted": omitted}
        intervals.append({"streams": streams, "sum": total})
    return intervals


def _report(sent: Sequence[_Row], received: Sequence[_Row], client_share: float, server_share: float) -> str:
    cpu = {"host_total": 100 * client_share, "remote_total": 100 * server_share}
    report = {
        "start": {"version": "twinbed's model of iperf 3.12"},
        "intervals": sent,
        "end": {"cpu_utilization_percent": cpu},
        "server_output_json": {"intervals": received},
    }
    return json.dumps(report, indent=1) + "\n"
