"""Where a curve bends: its empirical second derivative over N, and where that changes sign.

As in the LDRD report's Figure 3.2, it is the second difference of smoothed values over the squared step, scaled so that metrics
of different units can be laid over each other.  Steps need not be equal. For unequal steps the value is twice the second
divided difference.  For equal steps the two are the same; for a parabola the value is its second derivative whatever the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

ROUNDING = 1e-12
"""Smoothing and subtraction may make this share of the largest value from a straight line."""
NOISE = 0.05
"""Share of the greatest curvature below which its sign means nothing."""


@dataclass(frozen=True, slots=True)
class Inflection:
    at: float
    """The place on a straight line between the points of either sign."""
    rising: bool
    """True if the slope falls before the point and rises after it: the report's points "from decreasing to increasing
    slope"."""


def second_difference(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """Return the curvature at each x but the first and the last; 0 if it is no more than the rounding of the values. x must
    rise."""
    steps = [right - left for left, right in pairwise(x)]
    slopes = [(above - below) / step for (below, above), step in zip(pairwise(y), steps, strict=True)]
    rounding = ROUNDING * max(map(abs, y), default=0.0)
    return [
        2 * (after - before) / (left + right) if abs(after - before) > rounding * (1 / left + 1 / right) else 0.0
        for (before, after), (left, right) in zip(pairwise(slopes), pairwise(steps), strict=True)
    ]


def scaled(values: Sequence[float]) -> list[float]:
    """Scale values to at most 1 in size; 0 stays 0."""
    largest = max(map(abs, values), default=0.0)
    return [value / largest for value in values] if largest > 0 else list(values)


def inflections(x: Sequence[float], curvature: Sequence[float], noise: float = NOISE) -> list[Inflection]:
    """Return changes of sign between curvatures of more than ``noise`` of the greatest."""
    floor = noise * max(map(abs, curvature), default=0.0)
    large = [(at, value) for at, value in zip(x, curvature, strict=True) if abs(value) > floor]
    points = []
    for (left, before), (right, after) in pairwise(large):
        if (before > 0) != (after > 0):
            points.append(Inflection(_zero(x, curvature, left, right), after > 0))
    return points


def _zero(x: Sequence[float], curvature: Sequence[float], left: float, right: float) -> float:
    """Return the first change of sign between two points of different sign."""
    between = [(at, value) for at, value in zip(x, curvature, strict=True) if left <= at <= right]
    for (start, before), (end, after) in pairwise(between):
        if after == 0:
            return end
        if (before > 0) != (after > 0):
            return start + (end - start) * before / (before - after)
    return right


def order(points: Mapping[str, Sequence[Inflection]], *, rising: bool = True) -> list[tuple[str, float]]:
    """Return the first inflection of each metric that has one, in the order of N; equal ones by name."""
    first = [
        (min(point.at for point in turns if point.rising == rising), name)
        for name, turns in points.items()
        if any(point.rising == rising for point in turns)
    ]
    return [(name, at) for at, name in sorted(first)]
