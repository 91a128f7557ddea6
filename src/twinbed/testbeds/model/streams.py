"""iperf3 over TCP: streams that never have nothing to send, or as much as ``-b`` lets them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from twinbed.model.topology import Link
from twinbed.testbeds.model.clock import Clock, Cpu
from twinbed.testbeds.model.costs import Costs
from twinbed.testbeds.model.link import Direction
from twinbed.testbeds.model.tcp import Sender, Tcp

BLOCK_BYTES = 131_072
"""What iperf3 writes at once to TCP."""
PACING_S = 1e-3
"""How often iperf3 looks whether a stream may go on under ``-b`` (its pacing timer)."""
_ENDLESS_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class Sent:
    """What one stream did in one second."""

    sent_bytes: int
    received_bytes: int
    retransmissions: int
    cwnd_bytes: int
    rtt_s: float


@dataclass(frozen=True, slots=True)
class Flow:
    """What iperf3 is told."""

    seconds: int
    streams: int
    rate: int | None
    """Of each, bit/s."""
    block_bytes: int = BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Streamed:
    intervals: list[list[Sent]]
    """Of each second, each stream's."""
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
    """A whole run, from the moment that the connections are made."""
    clock = Clock()
    client, server = (Cpu(clock, costs.wake_s) for _ in range(2))
    there, back = Direction(link, costs.latency_s, chance), Direction(link, costs.latency_s, chance)
    rtt_s = back.sure(there.sure(0.0, tcp.syn_bytes), tcp.syn_bytes)
    streams = [_Stream() for _ in range(flow.streams)]
    for each in streams:
        each.sender = Sender(
            clock,
            tcp,
            (there, back),
            (client, server),
            (costs.sending, costs.receiving),
            each.read,
            lambda: None,
            rtt_s,
        )

    def write_paced() -> None:
        assert flow.rate is not None
        for each in streams:
            while each.written_bytes * 8 <= flow.rate * clock.now_s:
                each.written_bytes += flow.block_bytes
                each.sender.write(flow.block_bytes)
        clock.at(clock.now_s + PACING_S, write_paced)

    if flow.rate is None:
        for each in streams:
            clock.at(0.0, each.sender.write, _ENDLESS_BYTES)
    else:
        clock.at(0.0, write_paced)
    intervals = []
    for second in range(flow.seconds):
        clock.run(second + 1.0, lambda: False)
        intervals.append([each.interval() for each in streams])
    return Streamed(intervals, min(client.busy_s / flow.seconds, 1.0), min(server.busy_s / flow.seconds, 1.0))
