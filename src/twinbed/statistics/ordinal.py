"""Two samples on an ordinal scale: only order counts, so any values in the same order give the same answers.

Cliff's delta (1993, Psychol. Bull. 114:494) is P(value > reference) - P(value < reference), from -1 to 1, by counting all
pairs. Its interval and its tests at a margin are Newcombe's method 5 (2006, Stat. Med. 25:559), which inverts the test.  With
theta = (delta + 1) / 2 it holds all theta for which |observed - theta| <= z sqrt(V(theta)), where for n and m values and
k = (n + m)/2 - 1

    V(theta) = theta (1 - theta) (1 + k ((1 - theta)/(2 - theta) + theta/(1 + theta))) / (n m).

The interval has a width even where one sample lies wholly above the other.  The test of no difference is Mann and Whitney's
(1947, Ann. Math. Stat. 18:50): exact without ties for up to EXACT pairs, else normal, corrected for ties and continuity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import ndtr, ndtri

from twinbed.statistics.bounds import Bounds

EDGE = 1e-9
EXACT = 2500
"""The distribution is counted for at most so many pairs."""


@dataclass(frozen=True, slots=True)
class OrdinalTest:
    """``delta`` is Cliff's; ``p_different`` is of |delta| > margin, and never less than Mann and Whitney's of delta = 0."""

    delta: float
    interval: Bounds
    """The interval at 1 - 2 alpha."""
    wide: Bounds
    """The interval at 1 - alpha."""
    p_mann_whitney: float
    p_equivalent: float
    p_different: float


def cliffs_delta(values: Sequence[float], reference: Sequence[float]) -> float:
    """Return the share of pairs with the value above the reference's, less the share with it below."""
    pairs = sum((value > other) - (value < other) for value in values for other in reference)
    return pairs / (len(values) * len(reference))


def ordinal_test(values: Sequence[float], reference: Sequence[float], margin: float, alpha: float) -> OrdinalTest:
    """Compare two samples of at least two values each; equivalent is |delta| <= margin."""
    n, m, delta = len(values), len(reference), cliffs_delta(values, reference)
    theta, room = (delta + 1) / 2, margin / 2

    def p_above(edge: float) -> float:
        return float(ndtr(-(theta - edge) / math.sqrt(_variance(edge, n, m))))

    p_mann_whitney = mann_whitney(values, reference)
    beyond = 2 * min(p_above(0.5 + room), 1 - p_above(0.5 - room))
    return OrdinalTest(
        delta,
        _interval(theta, n, m, alpha),
        _interval(theta, n, m, alpha / 2),
        p_mann_whitney,
        max(p_above(0.5 - room), 1 - p_above(0.5 + room)),
        min(1.0, max(beyond, p_mann_whitney)),
    )


def _variance(theta: float, n: int, m: int) -> float:
    k = (n + m) / 2 - 1
    return theta * (1 - theta) * (1 + k * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (n * m)


def _interval(theta: float, n: int, m: int, tail: float) -> Bounds:
    """Return the interval of delta, by inversion, with ``tail`` on each side."""
    from scipy.optimize import brentq

    z = float(ndtri(1 - tail))

    def beyond(edge: float) -> float:
        return (theta - edge) ** 2 - z**2 * _variance(edge, n, m)

    # At 0 and 1 themselves the variance is 0, which is no limit.
    low = float(brentq(beyond, 0.0, min(theta, 1 - EDGE))) if theta > 0 else 0.0
    high = float(brentq(beyond, max(theta, EDGE), 1.0)) if theta < 1 else 1.0
    return Bounds(2 * low - 1, 2 * high - 1, 1 - 2 * tail)


def mann_whitney(values: Sequence[float], reference: Sequence[float]) -> float:
    """Return the two-sided p-value of the test that neither sample tends to be above the other."""
    n, m = len(values), len(reference)
    above = sum((value > other) + 0.5 * (value == other) for value in values for other in reference)
    counts = Counter([*values, *reference])
    if len(counts) == n + m and n * m <= EXACT:
        ways = _ways(n, m)
        tail = sum(ways[: round(min(above, n * m - above)) + 1])
        return min(1.0, 2 * tail / sum(ways))
    total = n + m
    ties = sum(count**3 - count for count in counts.values())
    spread = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if spread <= 0:
        return 1.0
    z = max(0.0, abs(above - n * m / 2) - 0.5) / math.sqrt(spread)
    return min(1.0, 2 * float(ndtr(-z)))


@lru_cache(maxsize=64)
def _ways(n: int, m: int) -> tuple[int, ...]:
    """Return the number of orders of n and m different values with exactly u pairs above, for each u: Gauss's binomial."""
    ways = [1] + [0] * (n * m)
    for factor in range(1, n + 1):
        for u in range(n * m, m + factor - 1, -1):
            ways[u] -= ways[u - m - factor]
        for u in range(factor, n * m + 1):
            ways[u] += ways[u - factor]
    return tuple(ways)
