"""Which intervals of iperf3's reports lie in the time in which all clients sent.

iperf3 does not tell when its streams began. They began no sooner than the client's program, and no later than would leave
their seconds before its end, nor than CONNECTED_S after its start: what the end takes beyond (results come back over a link
that may be full) is no reason to think so. An interval is inside where it is inside whenever the streams of any client began.
Intervals are whole, so that up to one and a quarter second at either end of a client's time is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.model.clients import ClientTimes
from twinbed.readers.iperf3 import Intervals

CONNECTED_S = 0.25
"""How long after its program's start a client's streams are taken to have begun at the latest."""


@dataclass(frozen=True, slots=True)
class Streams:
    """What one end of a client's streams wrote, omitted intervals with it, and when the client's program ran."""

    intervals: Intervals
    times: ClientTimes

    @property
    def seconds(self) -> float:
        return math.fsum(each["sum"]["seconds"] for each in self.intervals)

    @property
    def latest_start_s(self) -> float:
        unknown_s = self.times.end_s - self.times.start_s - self.seconds
        return self.times.start_s + min(max(0.0, unknown_s), CONNECTED_S)

    @property
    def earliest_end_s(self) -> float:
        return min(self.times.end_s, self.times.start_s + self.seconds)

    def within(self, start_s: float, end_s: float) -> Intervals:
        """The intervals, without those omitted, that are between the two moments whenever the streams began."""
        inside, at = [], 0.0
        for each in self.intervals:
            until = at + each["sum"]["seconds"]
            counted = not each["sum"]["omitted"] and each["sum"]["seconds"] > 0
            if counted and self.times.start_s + at >= start_s and self.latest_start_s + until <= end_s:
                inside.append(each)
            at = until
        return inside


def common(senders: Sequence[Streams]) -> tuple[float, float]:
    """From when to when all clients sent for certain, omitted seconds with them; the end is before the start where they never
    did."""
    return max(each.latest_start_s for each in senders), min(each.earliest_end_s for each in senders)
