"""A TCP sender: slow start from the initial window, congestion avoidance, the receiver's window, loss.

Segments are as large as those that Linux hands to its link (tcp_tso_autosize): bytes for 1 ms at the pacing rate, more if the
round trip is short, at most 64 KiB. Without offload a segment is one MSS. The receiver acknowledges a segment when its CPU has
taken it. The sender notices a loss after one smoothed round trip; a tail loss probe finds a lost last segment (RFC 8985).

Sources: RFC 5681 (slow start, Reno), RFC 6928 (initial window), RFC 9438 (CUBIC), RFC 6298 (smoothed round trip).
Left out: HyStart, delayed and lost acknowledgments, pacing, and details of selective acknowledgments (every loss is noticed).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from twinbed.testbeds.model.clock import Clock, Cpu, Handling
from twinbed.testbeds.model.link import Direction

ETHERNET_BYTES = 14
"""A frame's header, which shapers count."""
IP_TCP_BYTES = 40
TIMESTAMPS_BYTES = 12
"""The option of RFC 7323, which Linux puts into every segment."""
SYN_OPTIONS_BYTES = 20
"""MSS, SACK permitted, timestamps, window scale."""
LARGEST_BYTES = 65_536
"""The largest segment with offload."""
FIRST_TIMEOUT_S = 1.0
"""The timeout before any round trip is known (RFC 6298)."""
DELAYED_ACK_S = 0.2
"""A tail loss probe waits this long after two round trips when only one segment is in flight (RFC 8985)."""
_PACING_SHIFT = 1024
"""Segments a second of the pacing rate (sk_pacing_shift 10)."""
_RTT_STEP_S = 512e-6
"""Each step in the shortest round trip halves the bytes that are added to a segment (tcp_tso_rtt_log 9)."""
CUBIC_C, CUBIC_BETA, RENO_BETA = 0.4, 0.7, 0.5

CongestionControl = Literal["cubic", "reno"]


@dataclass(frozen=True, slots=True)
class Tcp:
    """Settings that all senders share, in bytes."""

    mss_bytes: int
    initial_window: int
    """Segments."""
    window_bytes: int
    """The most bytes in flight, whatever the congestion window: the receiver's window or the sender's buffer."""
    congestion_control: CongestionControl
    offload: bool
    frame_overhead_bytes: int = ETHERNET_BYTES
    """Bytes that the link counts in a frame in addition to its IP packet."""

    @property
    def header_bytes(self) -> int:
        """Return the bytes of a segment's frame without its data."""
        return self.frame_overhead_bytes + IP_TCP_BYTES + TIMESTAMPS_BYTES

    def frames_bytes(self, data_bytes: int) -> int:
        """Return the bytes on the link, with a header for each MSS."""
        return data_bytes + self.packets(data_bytes) * self.header_bytes

    def packets(self, data_bytes: int) -> int:
        return -(-data_bytes // self.mss_bytes)

    @property
    def syn_bytes(self) -> int:
        return self.frame_overhead_bytes + IP_TCP_BYTES + SYN_OPTIONS_BYTES


class Sender:
    """One end of a connection, and the way of its bytes to the program at the other end."""

    def __init__(
        self,
        clock: Clock,
        tcp: Tcp,
        way: tuple[Direction, Direction],
        cpus: tuple[Cpu, Cpu],
        handling: tuple[Handling, Handling],
        delivered: Callable[[int], None],
        handed_over: Callable[[], None],
        rtt_s: float,
    ) -> None:
        """Take ``way`` there and back, and the sender's and the receiver's ``cpus`` and ``handling``.

        ``delivered`` is called with the bytes that the receiving program has read; ``handed_over`` when the link has all
        written bytes. ``rtt_s`` is the time of the handshake."""
        self._clock, self._tcp = clock, tcp
        self._there, self._back = way
        self._cpu, self._reader_cpu = cpus
        self._handling, self._reading = handling
        self._delivered, self._handed_over = delivered, handed_over
        self._writes: deque[int] = deque()
        self._pending = 0
        """Segments that the CPU has yet to hand over."""
        self.in_flight_bytes = 0
        self.cwnd_bytes = float(tcp.initial_window * tcp.mss_bytes)
        self._threshold_bytes = math.inf
        self.rtt_s = self._least_rtt_s = rtt_s
        self._reduced_s = -math.inf
        self._epoch_s: float | None = None
        self._peak_bytes = 0.0
        self._begun_bytes = 0.0
        self._reno_bytes = 0.0
        self.sent_bytes = 0
        """Bytes handed to the link, retransmissions included."""
        self.retransmitted_packets = self.retransmitted_bytes = 0

    def write(self, size_bytes: int) -> None:
        """Send these bytes; a segment never holds bytes of two writes."""
        self._writes.append(size_bytes)
        self._pump()

    def _pump(self) -> None:
        writes, mss = self._writes, self._tcp.mss_bytes
        while writes:
            room = min(self.cwnd_bytes, self._tcp.window_bytes) - self.in_flight_bytes
            left = writes[0]
            if room < min(mss, left):
                return
            size = min(int(room), left, self._segment_bytes())
            if size < left:
                size -= size % mss
                writes[0] = left - size
            else:
                writes.popleft()
            self.in_flight_bytes += size
            self._pending += 1
            self._cpu.work(self._handling.segment_s + size * self._handling.byte_s, self._hand, size)

    def _segment_bytes(self) -> int:
        """Return the size of the largest segment now."""
        mss = self._tcp.mss_bytes
        if not self._tcp.offload:
            return mss
        gain = 2.0 if self.cwnd_bytes < self._threshold_bytes / 2 else 1.2
        size = gain * self.cwnd_bytes / max(self.rtt_s, 1e-6) / _PACING_SHIFT
        size += LARGEST_BYTES >> min(int(self._least_rtt_s / _RTT_STEP_S), 31)
        return int(min(max(size, 2 * mss), LARGEST_BYTES)) // mss * mss

    def _hand(self, size: int) -> None:
        now_s = self._clock.now_s
        self.sent_bytes += size
        self._pending -= 1
        arrival_s = self._there.passes(now_s, self._tcp.frames_bytes(size))
        if arrival_s is not None:
            self._clock.at(arrival_s, self._arrived, size, now_s)
        else:
            wait_s = self.rtt_s
            if not self._writes and not self._pending:
                wait_s = 2 * self.rtt_s + (DELAYED_ACK_S if self.in_flight_bytes == size else 0.0)
            self._clock.at(now_s + wait_s, self._lost, size, now_s)
        if not self._writes and not self._pending:
            self._handed_over()

    def _arrived(self, size: int, sent_s: float) -> None:
        self._reader_cpu.work(self._reading.segment_s + size * self._reading.byte_s, self._read, size, sent_s)

    def _read(self, size: int, sent_s: float) -> None:
        back_s = self._back.sure(self._clock.now_s, self._tcp.header_bytes)
        self._clock.at(back_s, self._acknowledged, size, sent_s)
        self._delivered(size)

    def _acknowledged(self, size: int, sent_s: float) -> None:
        sample_s = self._clock.now_s - sent_s
        self.rtt_s += (sample_s - self.rtt_s) / 8
        self._least_rtt_s = min(self._least_rtt_s, sample_s)
        # A window that was not used tells nothing about the path (RFC 7661); Linux lets slow start use half.
        used = self.in_flight_bytes
        self.in_flight_bytes -= size
        if self.cwnd_bytes < self._threshold_bytes:
            if self.cwnd_bytes < 2 * used:
                self.cwnd_bytes += size
        elif used >= self.cwnd_bytes - self._segment_bytes():
            self._avoid_congestion(size)
        self._pump()

    def _avoid_congestion(self, size: int) -> None:
        mss = self._tcp.mss_bytes
        if self._tcp.congestion_control == "reno":
            self.cwnd_bytes += mss * size / self.cwnd_bytes
            return
        if self._epoch_s is None:
            self._epoch_s = self._clock.now_s
            self._peak_bytes = max(self._peak_bytes, self.cwnd_bytes)
            self._begun_bytes = self._reno_bytes = self.cwnd_bytes
        flat_s = math.cbrt((self._peak_bytes - self._begun_bytes) / mss / CUBIC_C)
        since_s = self._clock.now_s - self._epoch_s + self.rtt_s
        target = self._peak_bytes + CUBIC_C * (since_s - flat_s) ** 3 * mss
        alpha = 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA)
        self._reno_bytes += alpha * mss * size / self.cwnd_bytes
        target = max(min(target, 1.5 * self.cwnd_bytes), self.cwnd_bytes)
        self.cwnd_bytes = max(self.cwnd_bytes + (target - self.cwnd_bytes) * size / self.cwnd_bytes, self._reno_bytes)

    def _lost(self, size: int, sent_s: float) -> None:
        self.in_flight_bytes -= size
        self.retransmitted_packets += self._tcp.packets(size)
        self.retransmitted_bytes += size
        if sent_s > self._reduced_s:
            self._reduced_s = self._clock.now_s
            cubic = self._tcp.congestion_control == "cubic"
            # Fast convergence (RFC 9438, 4.7): a flow with an earlier loss than last time leaves room for others.
            lower = self.cwnd_bytes < self._peak_bytes
            self._peak_bytes = self.cwnd_bytes * ((1 + CUBIC_BETA) / 2 if lower else 1.0)
            self.cwnd_bytes = max(self.cwnd_bytes * (CUBIC_BETA if cubic else RENO_BETA), 2.0 * self._tcp.mss_bytes)
            self._threshold_bytes = self.cwnd_bytes
            self._epoch_s = None
        self._writes.appendleft(size)
        self._pump()
