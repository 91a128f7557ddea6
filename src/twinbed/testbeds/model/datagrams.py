"""iperf3 over UDP: datagrams at the rate that is offered, or as fast as the client's CPU makes them. Nothing comes back."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from random import Random

from twinbed.model.topology import Link
from twinbed.testbeds.model.costs import Costs
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.streams import PACING_S

IP_BYTES, UDP_BYTES = 20, 8
BUFFER_BYTES = 212_992
"""Of a socket (net.core.rmem_default)."""
BUFFERED_BYTES = 2304
"""What a packet of up to 1500 bytes takes of it (truesize: 2048 for the data, 256 for its sk_buff)."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What iperf3 is told, bytes and bit/s."""

    seconds: int
    streams: int
    rate: int | None
    payload_bytes: int
    mtu_bytes: int
    frame_overhead_bytes: int
    buffer_bytes: int = BUFFER_BYTES

    @property
    def packets(self) -> int:
        """IP packets of one datagram."""
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
    """Of each second, each stream's."""
    client_share: float
    server_share: float


def offer(offered: Offered, link: Link, costs: Costs, chance: Random) -> Came:
    """A whole run. iperf3 sends what is due each millisecond, streams in turn."""
    there = Direction(link, costs.latency_s, chance)
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
        arrival_s = there.passes(sender_s, frames)
        if arrival_s is not None:
            while waiting and waiting[0] <= arrival_s:
                waiting.popleft()
            if len(waiting) >= most_waiting:
                arrival_s = None
        if arrival_s is None:
            # The server sees the gap with the next that comes.
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
