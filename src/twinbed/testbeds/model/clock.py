"""A simulation's clock, which runs events in order; a host's CPU, which does one thing at a time; and the CPU time of work."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVarTuple

With = TypeVarTuple("With")


class Clock:
    """Simulated time from 0 s. Events due at the same moment run in the order in which they were added."""

    __slots__ = ("_count", "_due", "now_s")

    def __init__(self) -> None:
        self.now_s = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time_s: float, act: Callable[[*With], None], *arguments: *With) -> None:
        self._count += 1
        due: tuple[float, int, Callable[[], None]] = (time_s, self._count, partial(act, *arguments))
        heapq.heappush(self._due, due)

    def run(self, until_s: float, over: Callable[[], bool]) -> None:
        """Run events before ``until_s``, and stop after the first one after which ``over`` is true."""
        due, pop = self._due, heapq.heappop
        while due and due[0][0] < until_s:
            self.now_s, _, act = pop(due)
            act()
            if over():
                return
        self.now_s = until_s


class Cpu:
    """One CPU, first come, first served. An idle CPU sleeps and takes ``wake_s`` to wake up."""

    __slots__ = ("_clock", "_free_s", "_wake_s", "busy_s")

    def __init__(self, clock: Clock, wake_s: float) -> None:
        self._clock, self._wake_s = clock, wake_s
        self._free_s = 0.0
        self.busy_s = 0.0
        """Work done, without waking up."""

    def work(self, seconds: float, then: Callable[[*With], None], *arguments: *With) -> None:
        """Call ``then`` after ``seconds`` of work."""
        now_s = self._clock.now_s
        begins_s = self._free_s if self._free_s >= now_s else now_s + self._wake_s
        self._free_s = begins_s + seconds
        self.busy_s += seconds
        self._clock.at(self._free_s, then, *arguments)


@dataclass(frozen=True, slots=True)
class Handling:
    """CPU time to hand a segment to the link or take it from there: seconds for the segment, and for each byte."""

    segment_s: float
    byte_s: float


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU time of each piece of work, in seconds."""

    client_connection_s: float
    client_request_s: float
    server_connection_s: float
    server_request_s: float
    sending: Handling
    receiving: Handling
    latency_s: float
    """One way, of a packet on an idle path."""
    wake_s: float
    """To wake an idle CPU."""
