"""What happens in a simulation, one thing after another; and what one CPU can do, one thing at a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import TypeVarTuple

With = TypeVarTuple("With")


class Clock:
    """Simulated time, from 0 s. Things that are due at the same moment happen in the order in which they were asked for."""

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
        """Until ``until_s``, or until ``over`` after what has just happened; what is due at ``until_s`` does not happen."""
        due, pop = self._due, heapq.heappop
        while due and due[0][0] < until_s:
            self.now_s, _, act = pop(due)
            act()
            if over():
                return
        self.now_s = until_s


class Cpu:
    """One CPU, first come, first served. Where it has nothing to do it sleeps, and takes ``wake_s`` to come back."""

    __slots__ = ("_clock", "_free_s", "_wake_s", "busy_s")

    def __init__(self, clock: Clock, wake_s: float) -> None:
        self._clock, self._wake_s = clock, wake_s
        self._free_s = 0.0
        self.busy_s = 0.0
        """What it has been asked for, without waking up."""

    def work(self, seconds: float, then: Callable[[*With], None], *arguments: *With) -> None:
        """Does ``then`` once this is done."""
        now_s = self._clock.now_s
        begins_s = self._free_s if self._free_s >= now_s else now_s + self._wake_s
        self._free_s = begins_s + seconds
        self.busy_s += seconds
        self._clock.at(self._free_s, then, *arguments)
