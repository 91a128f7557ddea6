"""Quantiles with intervals that hold for any continuous distribution, and the ratio of two medians.

One sample has the interval between two order statistics, whose coverage is a binomial's whatever the distribution (Thompson
1936, Ann. Math. Stat. 7:122; Conover, Practical Nonparametric Statistics, 3rd ed., 3.2).  Tails are equal if the sample allows.
If its largest or smallest value leaves more than an equal tail but less than both, the other end has the rest. The ratio of
medians follows Price and Bonett (2002, J. Stat. Comput. Simul. 72:119; formulas as Bonett and Price 2020, J. Educ. Behav. Stat.
45:750), by the logarithms of order statistics around each median; values are positive.  Unlike the interval of one quantile it
assumes one mode: between two modes the density at the median is near 0, and the interval holds the ratio in half to two thirds
of samples (docs/coverage.md).

Quantiles by Harrell and Davis (1982, Biometrika 69:635): weighted means of all order statistics.

The weight of the i-th of n values is the probability of ((i-1)/n, i/n) under a beta distribution with parameters (n+1)p and
(n+1)(1-p).  The weights of its outermost NOTHING at each end are not computed, so that a quantile of millions of values takes
those of a few thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betainc, betaincinv, ndtri

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.sample import Sample

LEAST = 5
"""The interval of a ratio of medians needs samples of so many values."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Two order statistics, counted from 1, and the probability that the quantile lies between them."""

    low: int
    high: int
    coverage: float


@lru_cache(maxsize=4096)
def ranks(n: int, share: float, level: float) -> Ranks | None:
    """Return the order statistics of n values between which the quantile ``share`` lies at least at ``level``; None for too
    few."""
    tail, least, most = (1 - level) / 2, (1 - share) ** n, share**n
    spare = 1 - level
    if most > tail:
        low = _largest_low(n, share, spare - most)
        high = n
    elif least > tail:
        low, high = 1, _smallest_high(n, share, spare - least)
    else:
        low, high = _largest_low(n, share, tail), _smallest_high(n, share, tail)
    if low < 1 or high > n or low >= high:
        return None
    return Ranks(low, high, float(bdtr(high - 1, n, share) - bdtr(low - 1, n, share)))


def _largest_low(n: int, share: float, tail: float) -> int:
    """Return the largest rank below which the quantile lies with at most the tail's probability; 0 if there is none."""
    return next((rank for rank in range(math.ceil(n * share), 0, -1) if bdtr(rank - 1, n, share) <= tail), 0)


def _smallest_high(n: int, share: float, tail: float) -> int:
    return next((rank for rank in range(max(1, int(n * share)), n + 1) if 1 - bdtr(rank - 1, n, share) <= tail), n + 1)


@lru_cache(maxsize=256)
def fewest(share: float, level: float) -> int:
    """Return the fewest values with which a quantile has an interval: both tails together are at most 1 - level."""
    n = 2
    while share**n + (1 - share) ** n > 1 - level:
        n += 1
    return n


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile, interpolated between order statistics (type 7 of Hyndman and Fan 1996, Am. Stat. 50:361, as in numpy
    and R)."""
    ordered = Sample.of(values).ordered
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def quantile_interval(values: Sequence[float], share: float, level: float) -> Bounds | None:
    """Return the interval of a quantile; None for fewer values than ``fewest``. The bounds' ``level`` is the requested one; the
    coverage is at least that."""
    limits = ranks(len(values), share, level)
    if limits is None:
        return None
    ordered = Sample.of(values).ordered
    return Bounds(ordered[limits.low - 1], ordered[limits.high - 1], level)


def median_ratio_interval(values: Sequence[float], reference: Sequence[float], level: float) -> Bounds | None:
    """Return the interval of median(values) / median(reference); None for fewer than LEAST values, or if one is not
    positive."""
    own, other = Sample.of(values), Sample.of(reference)
    if min(len(own), len(other)) < LEAST or min(own.least, other.least) <= 0:
        return None
    ratio = math.log(own.median / other.median)
    half = float(ndtri((1 + level) / 2)) * math.hypot(_log_median_error(own), _log_median_error(other))
    return Bounds(math.exp(ratio - half), math.exp(ratio + half), level)


def _log_median_error(sample: Sample) -> float:
    n, ordered = len(sample), sample.ordered
    rank = max(1, round(n / 2 - math.sqrt(n)))
    z = float(ndtri(1 - float(bdtr(rank - 1, n, 0.5))))
    return math.log(ordered[n - rank] / ordered[rank - 1]) / (2 * z)


Floats = NDArray[np.float64]

NOTHING = 1e-18


def harrell_davis(ordered: Floats, shares: Sequence[float]) -> list[float]:
    """Return the quantiles of at least one value, given in increasing order; ``shares`` between 0 and 1.

    >>> harrell_davis(np.arange(1.0, 10.0), [0.5])
    [5.0]
    """
    return [_harrell_davis(ordered, share) for share in shares]


def beta_parameters(n: int, share: float) -> tuple[float, float]:
    """Return the beta_parameters of the beta distribution whose probabilities are the weights of n values."""
    return (n + 1) * share, (n + 1) * (1 - share)


def _harrell_davis(ordered: Floats, share: float) -> float:
    n = len(ordered)
    a, b = beta_parameters(n, share)
    first, last = math.floor(n * betaincinv(a, b, NOTHING)), math.ceil(n * (1 - betaincinv(b, a, NOTHING)))
    weights = np.diff(betainc(a, b, np.arange(first, last + 1) / n))
    return float(weights @ ordered[first:last] / weights.sum())
