"""What a host's clocks say, held against the clock of this machine that is never set.

A host is asked between two moments of this machine's, so its clock is known as exactly as the question took long.  Two readings
bound its rate.  A host whose rate cannot be within ``RATE`` of 1 measures every duration wrongly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from twinbed.contracts.bed import Applied
from twinbed.contracts.host import Host
from twinbed.hosts.error import HostError

RATE = 0.01
"""Relative. Oscillators are within 1e-4 of each other, and clocks that NTP's daemons slew within 1e-3. A guest that was told
how fast its processor counts may be off by 1e-2 until its kernel has measured it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds. ``before_s`` and ``after_s`` are on this machine's monotonic clock."""

    monotonic_s: float
    realtime_s: float
    before_s: float
    after_s: float

    @property
    def ahead_s(self) -> float:
        """How far the clock of the day is ahead of the one that is never set."""
        return self.realtime_s - self.monotonic_s


def read(host: Host, limit_s: float = 20.0) -> Reading:
    before_s = time.monotonic()
    clocks = host.ping(limit_s)
    return Reading(float(clocks["monotonic_s"]), float(clocks["realtime_s"]), before_s, time.monotonic())


def rate(first: Reading, last: Reading) -> tuple[float, float]:
    """The least and the greatest number of the host's seconds in one of this machine's; the greatest is infinite where the
    questions met."""
    passed_s = last.monotonic_s - first.monotonic_s
    least_s, most_s = last.before_s - first.after_s, last.after_s - first.before_s
    return passed_s / most_s, passed_s / least_s if least_s > 0 else float("inf")


def same_rate(name: str, first: Reading, last: Reading) -> Applied:
    """The measured rate; None where the readings do not bound it to ``RATE``. Raises HostError where it cannot be this
    machine's."""
    low, high = rate(first, last)
    if low > 1 + RATE or high < 1 - RATE:
        raise HostError(
            f"{name}: its clock runs {low:.4g} to {high:.4g} times as fast as this machine's, so nothing that it times is right"
        )
    measured = round((low + high) / 2, 2) if high - low <= 2 * RATE else None
    return Applied(name, "clock rate", None, measured, "ping")
