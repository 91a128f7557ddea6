"""One direction of a path: a delay, then a shaper with a token bucket, then the latency of idle hosts and an idle switch.

A packet meets netem and then HTB or TBF in this order at a switch's port. A queue holds delayed and waiting packets as they
were handed over: a segment of up to 64 KiB with offload counts as one. Packets stay in order.
"""

from __future__ import annotations

from collections import deque
from random import Random

from twinbed.model.topology import Link

DEVICE_QUEUE_PACKETS = 1000
"""Linux's default for an Ethernet device (txqueuelen), which the leaf of HTB inherits."""
TBF_QUEUE_S = 0.05
"""The longest wait of a packet when twinbed shapes with TBF (``links/shaping``)."""


class Direction:
    """The path from one host to another. Calls come in order of their times, seconds from the simulation's start."""

    def __init__(self, link: Link, latency_s: float, chance: Random) -> None:
        self._delay_s, self._jitter_s = link.delay or 0.0, link.jitter or 0.0
        self._loss = link.loss or 0.0
        self._latency_s = latency_s
        self._chance = chance
        self._per_byte_s = 8 / link.rate if link.rate else 0.0
        self._bucket_s = (link.burst_bytes or 0) * self._per_byte_s
        self._most_packets = link.queue_packets
        self._most_waiting_s = float("inf")
        if link.rate and self._most_packets is None:
            if link.shaper == "tbf":
                self._most_waiting_s = TBF_QUEUE_S
            else:
                self._most_packets = DEVICE_QUEUE_PACKETS
        self._in_queue: deque[float] = deque()
        self._last_s = 0.0
        self._settled_s = float("-inf")

    def sure(self, now_s: float, frame_bytes: int) -> float:
        """Return when a packet arrives that nothing drops."""
        delay_s = self._delay_s
        if self._jitter_s:
            delay_s += self._chance.uniform(-self._jitter_s, self._jitter_s)
        delayed_s = max(self._last_s, now_s + delay_s)
        self._last_s = delayed_s
        return self._shaped(delayed_s, frame_bytes) + self._latency_s

    def passes(self, now_s: float, frame_bytes: int) -> float | None:
        """Return when a packet arrives; None if it is lost."""
        if self._loss and self._chance.random() < self._loss:
            return None
        waiting = self._in_queue
        if self._most_packets is not None:
            while waiting and waiting[0] <= now_s:
                waiting.popleft()
            if len(waiting) >= self._most_packets:
                return None
        if self._settled_s - self._bucket_s - now_s > self._most_waiting_s:
            return None
        arrival_s = self.sure(now_s, frame_bytes)
        if self._most_packets is not None:
            waiting.append(arrival_s - self._latency_s)
        return arrival_s

    def _shaped(self, now_s: float, frame_bytes: int) -> float:
        """Return when the last byte has left. ``_settled_s`` is when the bucket will be full again (GCRA, ITU-T I.371)."""
        self._settled_s = max(self._settled_s, now_s) + frame_bytes * self._per_byte_s
        return max(now_s, self._settled_s - self._bucket_s)
