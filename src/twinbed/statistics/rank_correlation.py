"""Do two quantities rise together? Rank correlations, with ties: Spearman's rho and Kendall's tau-b, and tests of no
correlation.

P-values are two-sided.  Spearman's is over all orders for at most EXACT pairs, tied or not, else by Student's t (Kendall and
Stuart, 31.19).  Kendall's is exact without ties for at most EXACT_KENDALL pairs, else normal with the variance corrected for
ties (Kendall 1970, Rank Correlation Methods, chapter 4).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

Floats = NDArray[np.float64]
EXACT, EXACT_KENDALL = 8, 49
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Correlation:
    value: float
    """From -1 to 1."""
    p_value: float


def midranks(values: Sequence[float]) -> Floats:
    """Ranks from 1; ties share the mean of their ranks."""
    sample = np.asarray(values, dtype=np.float64)
    ordered = np.sort(sample)
    ranks: Floats = (np.searchsorted(ordered, sample, "left") + np.searchsorted(ordered, sample, "right") + 1) / 2
    return ranks


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """None for fewer than three pairs, and where either does not vary."""
    one, two = midranks(x) - (len(x) + 1) / 2, midranks(y) - (len(y) + 1) / 2
    scale = math.sqrt(float(one @ one) * float(two @ two))
    if len(x) < 3 or scale == 0:
        return None
    rho = max(-1.0, min(1.0, float(one @ two) / scale))
    if len(x) <= EXACT:
        all_of = one[_orders(len(x))] @ two / scale
        return Correlation(rho, float(np.mean(np.abs(all_of) >= abs(rho) - ROUNDING)))
    if abs(rho) == 1:
        return Correlation(rho, 0.0)
    t = abs(rho) * math.sqrt((len(x) - 2) / (1 - rho * rho))
    return Correlation(rho, min(1.0, 2 * float(stdtr(len(x) - 2, -t))))


@cache
def _orders(n: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(n))), dtype=np.intp)


def kendall(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """None for fewer than three pairs, and where either does not vary."""
    n = len(x)
    one, two = (np.sign(np.subtract.outer(each, each)) for each in (np.asarray(x), np.asarray(y)))
    rising = float(np.sum(one * two)) / 2
    pairs = n * (n - 1) / 2
    tied = [sorted(Counter(values).values()) for values in (x, y)]
    free = [pairs - sum(count * (count - 1) / 2 for count in counts) for counts in tied]
    if n < 3 or min(free) == 0:
        return None
    tau = rising / math.sqrt(free[0] * free[1])
    if n <= EXACT_KENDALL and max(map(max, tied)) == 1:
        return Correlation(tau, _exact(n, round((pairs - abs(rising)) / 2)))
    z = abs(rising) / math.sqrt(_variance(n, *tied))
    return Correlation(tau, min(1.0, 2 * float(ndtr(-z))))


def _exact(n: int, discordant: int) -> float:
    """The chance of at most so few discordant pairs, or so few concordant ones, if all orders are equally likely."""
    return min(1.0, 2 * float(_inversions(n)[: discordant + 1].sum()))


@cache
def _inversions(n: int) -> Floats:
    """Chance of each number of discordant pairs."""
    chances = np.ones(1)
    for length in range(2, n + 1):
        chances = np.convolve(chances, np.full(length, 1 / length))
    return chances


def _variance(n: int, one: Sequence[int], two: Sequence[int]) -> float:
    """The variance of the number of concordant pairs less that of discordant ones."""

    def sums(counts: Sequence[int]) -> tuple[float, float, float]:
        return (
            sum(t * (t - 1) * (2 * t + 5) for t in counts),
            sum(t * (t - 1) * (t - 2) for t in counts),
            sum(t * (t - 1) for t in counts),
        )

    (a, b, c), (d, e, f) = sums(one), sums(two)
    third = b * e / (9 * n * (n - 1) * (n - 2))
    return (n * (n - 1) * (2 * n + 5) - a - d) / 18 + third + c * f / (2 * n * (n - 1))
