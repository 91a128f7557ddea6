"""Two clocks seen through delays: their offset, the drift of one from the other, and where one was stepped.

A packet that goes there and back is stamped when sent and when received, by the clock of each end.  Let d >= 0 be the delay and
o(t) the second clock less the first.  The stamps' differences are ``there = d_there + o`` and ``back = d_back - o``.  Every
packet therefore bounds o from above by ``there`` and from below by ``-back``, whatever the delays were.

Clocks with constant rates have o(t) = a + b t.  Moon, Skelly and Towsley (1999, Proc. IEEE INFOCOM, 227-234) find b as the
slope of the line that stays below the delays and as close to them as it can: a linear programme whose answer lies on the lower
convex hull.  With both directions there are two such lines of one slope, and the programme is the same: the slope for which the
sum of the least distances is largest.  The offset lies between the two lines. The middle is exact where the least delays of
both directions are equal, and its error is at most half the least round trip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_LEVEL_S = 1e-12
SETTLED = 5
"""Values on either side of a step that must agree with each other."""


@dataclass(frozen=True, slots=True)
class Straight:
    """The second clock less the first, as a straight line of the first one's time."""

    offset_s: float
    """At time 0."""
    bound_s: float
    """The largest possible error of the offset at this drift: half the least round trip."""
    drift: float
    """Seconds a second."""
    drift_low: float
    """The least drift with which no delay is below 0. It and the greatest differ by about the least round trip over the time
    measured."""
    drift_high: float

    @property
    def drifts(self) -> bool:
        """Return whether the delays prove a drift."""
        return self.drift_low > 0 or self.drift_high < 0


def straight(there_at_s: Numbers, there_s: Numbers, back_at_s: Numbers, back_s: Numbers) -> Straight | None:
    """Fit the line between two clocks with constant rates, from stamps' differences and their times by the first clock. None
    for fewer than two packets either way, or if no straight line keeps every delay at 0 or above."""
    if min(len(there_s), len(back_s)) < 2:
        return None
    upper = lower_hull(there_at_s, there_s)
    lower = lower_hull(back_at_s, back_s)

    def above(slope: float) -> float:
        return float(np.min(upper[1] - slope * upper[0]))

    def below(slope: float) -> float:
        return float(-np.min(lower[1] + slope * lower[0]))

    def gap(slope: float) -> float:
        return above(slope) - below(slope)

    slopes = np.unique(np.concatenate([_slopes(upper), -_slopes(lower)]))
    gaps = np.array([gap(slope) for slope in slopes])
    if not len(slopes) or gaps.max() < 0:
        return None
    # The gap is concave, and straight between the slopes: it is largest at one of them, or level between two.
    best = slopes[gaps >= gaps.max() - _LEVEL_S]
    drift = float(best[0] + best[-1]) / 2
    span_s = float(max(upper[0][-1], lower[0][-1]) - min(upper[0][0], lower[0][0]))
    return Straight(
        offset_s=(above(drift) + below(drift)) / 2,
        bound_s=gap(drift) / 2,
        drift=drift,
        drift_low=_crossing(slopes, gaps, gap, -1.0, span_s),
        drift_high=_crossing(slopes, gaps, gap, 1.0, span_s),
    )


def _crossing(slopes: Numbers, gaps: Numbers, gap: Callable[[float], float], way: float, span_s: float) -> float:
    """Return the slope where the gap falls to 0, outwards in one direction. Beyond the outermost slope it falls in a straight
    line."""
    order = np.argsort(way * slopes)
    slopes, gaps = slopes[order], gaps[order]
    last = int(np.flatnonzero(gaps >= 0)[-1])
    inner, wide = float(slopes[last]), float(gaps[last])
    outer = float(slopes[last + 1]) if last + 1 < len(slopes) else inner + way * max(1.0, abs(inner))
    narrow = gap(outer)
    while narrow >= 0:
        inner, wide, outer = outer, narrow, outer + 2 * (outer - inner)
        narrow = gap(outer)
    return inner + (outer - inner) * wide / (wide - narrow)


def _slopes(hull: tuple[Numbers, Numbers]) -> Numbers:
    rise: Numbers = np.diff(hull[1]) / np.diff(hull[0])
    return rise


def lower_hull(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Return the corners of the lower convex hull, from left to right (Andrew 1979, Inf. Process. Lett. 9:216)."""
    order = np.lexsort((y, x))
    corners: list[tuple[float, float]] = []
    for point in zip(x[order].tolist(), y[order].tolist(), strict=True):
        if corners and point[0] == corners[-1][0]:
            continue
        while len(corners) > 1 and _turn(corners[-2], corners[-1], point) <= 0:
            corners.pop()
        corners.append(point)
    hull = np.array(corners)
    return hull[:, 0], hull[:, 1]


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return a number above 0 for a turn to the left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def level_shifts(levels: Numbers, least: float) -> list[tuple[int, float]]:
    """Find where a level that is otherwise constant changes for good: (index of the first value after it, by how much). The
    level is a clock's wall time less its monotonic time, which only a step of the clock changes. A single value that is off (a
    program interrupted between reading both clocks) is no shift; ``least`` is the smallest that counts."""
    if len(levels) < 2 * SETTLED:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(levels, SETTLED)
    medians = np.median(windows, axis=1)
    change = medians[SETTLED:] - medians[:-SETTLED]
    shifts = []
    at = 0
    while at < len(change):
        if abs(change[at]) < least:
            at += 1
            continue
        # The change shows from a little before the step to a little after; the step is where both sides have settled.
        end = at
        while end < len(change) and abs(change[end]) >= least:
            end += 1
        before = float(medians[at])
        after = float(medians[min(end - 1 + SETTLED, len(medians) - 1)])
        if abs(after - before) >= least:
            middle = (before + after) / 2
            beyond = (levels[at : end + 2 * SETTLED] > middle) == (after > before)
            shifts.append((at + _first_for_good(beyond), after - before))
        at = end
    return shifts


def _first_for_good(beyond: NDArray[np.bool_]) -> int:
    """Return the index that splits best: few values before it are beyond, and few after it are not."""
    wrong = np.concatenate([[0], np.cumsum(beyond)]) + np.concatenate([np.cumsum(~beyond[::-1])[::-1], [0]])
    return int(np.argmin(wrong))


def contradictions(
    there_at_s: Numbers, there_s: Numbers, back_at_s: Numbers, back_s: Numbers, window_s: float, most_drift: float
) -> list[tuple[float, float]]:
    """Find where no clock that drifts at most ``most_drift`` can have gone from one window's bounds to the next one's: (time of
    the window, least step in seconds). This is for stamps of wall clocks alone. A step smaller than the round trip is within
    the bounds and cannot be seen."""
    begin_s = min(there_at_s.min(), back_at_s.min())
    windows = np.floor((there_at_s - begin_s) / window_s), np.floor((back_at_s - begin_s) / window_s)
    contradicting = []
    last: tuple[float, float, float] | None = None
    for window in np.intersect1d(*windows):
        high = float(there_s[windows[0] == window].min())
        low = float(-back_s[windows[1] == window].min())
        if last is not None:
            slack = most_drift * (window + 1 - last[0]) * window_s
            if low > last[2] + slack or high < last[1] - slack:
                step_s = low - last[2] if low > last[2] else high - last[1]
                contradicting.append((begin_s + float(window) * window_s, step_s))
                last = None
        # Within a window that a step divides, the bounds themselves contradict each other.
        last = (float(window), low, high) if low <= high else last
    return contradicting
