"""Stalls: pauses in a run without any progress, far beyond its own pace.

Progress is an event: a request that is sent, an answer that is complete.  A pause between two of them is a stall if it is
longer than two limits: SHORTEST_S, the least time after which Linux retransmits (TCP_RTO_MIN), and FACTOR times the upper
quartile of the run's pauses.  Stalls of fewer than a quarter of the pauses do not move that quartile.  Random pauses
(exponential) have it at 1.39 of their means, so one is taken for a stall with a probability of e^-60. Five of a million
log-normal pauses with a sigma of 1 are. Pauses with a heavier tail, without any scale of their own, have stalls by this rule if
they reach SHORTEST_S.  Fewer than LEAST events show no pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHORTEST_S = 0.2
FACTOR = 43.0
QUARTILE = 0.75
LEAST = 20
SLOWEST = 0.05
"""Share of the median rate below which an interval of a report is a stall."""


@dataclass(frozen=True, slots=True)
class Stall:
    start_s: float
    """From the first event."""
    seconds: float

    @property
    def end_s(self) -> float:
        return self.start_s + self.seconds


def of_events(times_s: Floats) -> list[Stall] | None:
    """Find the stalls of a run by the times of its events, in any order; None if too few events show no pace."""
    ordered = np.sort(times_s)
    if len(ordered) < LEAST:
        return None
    pauses = np.diff(ordered)
    least = max(SHORTEST_S, FACTOR * float(np.quantile(pauses, QUARTILE)))
    return [Stall(float(ordered[at] - ordered[0]), float(pauses[at])) for at in np.flatnonzero(pauses > least)]


def of_requests(start_s: Floats, total_s: Floats, resolution_s: float) -> list[Stall] | None:
    """Find the stalls of a run by its requests, whose starts are cut to ``resolution_s``, as ``ab -g`` writes whole seconds.

    Starts of one second are spread evenly over it, the longest request last. A pause is then known to within the resolution at
    either end, so a stall must be longer than SHORTEST_S beyond both. It lasted no longer than the shortest request that was
    under way all the time. None if too few requests show no pace.
    """
    order = np.lexsort((total_s, start_s))
    starts, lasts = start_s[order], total_s[order]
    _, first, count = np.unique(starts, return_index=True, return_counts=True)
    place = np.arange(len(starts)) - np.repeat(first, count)
    begun = starts + resolution_s * (place + 0.5) / np.repeat(count, count)
    pauses = of_events(np.concatenate([begun, begun + lasts]))
    if pauses is None:
        return None
    zero, last = begun.min(), begun + lasts
    stalls = []
    for stall in pauses:
        if stall.seconds > SHORTEST_S + 2 * resolution_s:
            begins, ends = begun - zero <= stall.start_s + resolution_s, last - zero >= stall.end_s - resolution_s
            spanning = lasts[begins & ends & (np.abs(lasts - stall.seconds) <= 2 * resolution_s)]
            stalls.append(Stall(stall.start_s, float(spanning.min()) if len(spanning) else stall.seconds))
    return stalls


def together(stalls: Sequence[Stall]) -> list[Stall]:
    """Join stalls that overlap."""
    joined: list[Stall] = []
    for stall in sorted(stalls, key=lambda other: other.start_s):
        if joined and stall.start_s <= joined[-1].end_s:
            last = joined.pop()
            stall = Stall(last.start_s, max(last.end_s, stall.end_s) - last.start_s)
        joined.append(stall)
    return joined


def of_intervals(seconds: Sequence[float], work: Sequence[float]) -> list[Stall] | None:
    """Find the stalls of a run by the work done in each interval of a report; neighbouring intervals are one stall. None if too
    few intervals show no pace."""
    lengths, done = np.asarray(seconds, dtype=float), np.asarray(work, dtype=float)
    if len(done) < LEAST // 4 or not np.all(lengths > 0):
        return None
    rates = done / lengths
    slow = rates < SLOWEST * float(np.median(rates))
    starts = np.concatenate([[0.0], np.cumsum(lengths)])
    stalls: list[Stall] = []
    for at in np.flatnonzero(slow):
        if stalls and at and slow[at - 1]:
            stalls[-1] = Stall(stalls[-1].start_s, stalls[-1].seconds + float(lengths[at]))
        else:
            stalls.append(Stall(float(starts[at]), float(lengths[at])))
    return stalls
