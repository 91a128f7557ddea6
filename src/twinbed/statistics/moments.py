"""Means, variances, Student's interval of a mean, Welch's degrees of freedom, and Grubbs's test for one outlier.

Values of one sample are assumed to be independent draws from one distribution.  Sources: Student (1908, Biometrika 6:1), Welch
(1947, Biometrika 34:28), Satterthwaite (1946, Biometrics Bull. 2:110), Grubbs (1969, Technometrics 11:1).

Tests whether one of several that should be alike is apart from the others: the prediction interval of one more value.

Of k values from a normal distribution, the next one lies within ``mean ± t(k - 1, 1 - a/2) s sqrt(1 + 1/k)`` with probability 1
- a (Whitmore 1986, The American Statistician 40:141; Hahn and Meeker 1991, Statistical Intervals, sec. 4.8). The differences
among peers are in s: three peers allow the next one 30 times their spread, twenty peers 4 times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.distribution import t_quantile
from twinbed.statistics.sample import Sample

Floats = NDArray[np.float64]
OUTLIER_LEVEL = 0.001
"""Significance of Grubbs's test, small because every cell is tested."""
_WIDEST = 700.0
"""Logarithm at which ends of an interval are cut, so that they, their inverses and a hundred times as much are numbers."""


def factor(logarithm: float) -> float:
    """Return e^x of an end of an interval, at most 1e304 and at least its inverse. Few values that differ much have wider
    intervals, which say nothing."""
    return math.exp(min(_WIDEST, max(-_WIDEST, logarithm)))


def variance(values: Sequence[float]) -> float:
    """Return the sample variance, ddof 1, in two passes."""
    return Sample.of(values).variance


def covariance(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the sample covariance of two samples of the same length, ddof 1, in two passes."""
    mean, other_mean = fmean(values), fmean(others)
    return math.fsum([(x - mean) * (y - other_mean) for x, y in zip(values, others, strict=True)]) / (len(values) - 1)


def varies(values: Sequence[float]) -> bool:
    """Return whether values differ by more than the rounding of what they were computed from."""
    return Sample.of(values).varies


def logarithms(values: Sequence[float]) -> Sample:
    """Return logarithms of positive values; all the same if values differ by rounding only, which near 1 is all that would
    remain."""
    sample = Sample.of(values)
    return sample.logarithms if sample.varies else Sample([math.log(values[0])] * len(values))


def welch_df(a: float, n: int, b: float, m: int) -> float:
    """Return Satterthwaite's degrees of freedom of a difference of two means with squared standard errors ``a`` and ``b``."""
    # Shares are used because squares of tiny errors would be 0.
    share = a / (a + b)
    return 1 / (share**2 / (n - 1) + (1 - share) ** 2 / (m - 1))


def standard_error(values: Sequence[float], reference: Sequence[float], paired: bool) -> tuple[float, float]:
    """Return the standard error of mean(values) - mean(reference), 0 if nothing varies, and its degrees of freedom: Welch's for
    independent samples, n - 1 for n pairs."""
    n, m = len(values), len(reference)
    if paired:
        differences = [value - other for value, other in zip(values, reference, strict=True)]
        # What is left near 0 may be the rounding of what was subtracted.
        least = 1e-12 * max(
            abs(bound) for sample in map(Sample.of, (values, reference)) for bound in (sample.least, sample.most)
        )
        return math.sqrt(variance(differences) / n) if max(differences) - min(differences) > least else 0.0, n - 1.0
    a, b = variance(values) / n, variance(reference) / m
    return math.sqrt(a + b), welch_df(a, n, b, m) if a + b else n + m - 2.0


def mean_interval(values: Sequence[float], level: float) -> Bounds:
    """Return Student's t interval of the mean of at least two values, whose mean is taken as normal."""
    sample, n = Sample.of(values), len(values)
    mean, half = sample.average, float(stdtrit(n - 1, (1 + level) / 2)) * math.sqrt(sample.variance / n)
    return Bounds(mean - half, mean + half, level)


def holds_outlier(values: Sequence[float]) -> bool:
    """Apply Grubbs's two-sided test for one outlier at OUTLIER_LEVEL; False for fewer than 5 values."""
    n = len(values)
    if n < 5:
        return False
    sample = Sample.of(values)
    mean, stdev = sample.average, math.sqrt(sample.variance)
    if stdev == 0:
        return False
    t2 = float(stdtrit(n - 2, 1 - OUTLIER_LEVEL / (2 * n))) ** 2
    return max(sample.most - mean, mean - sample.least) / stdev > (n - 1) / math.sqrt(n) * math.sqrt(t2 / (n - 2 + t2))


FEWEST = 3
"""The fewest peers: with fewer hardly anything would be apart from them."""


def half_width(peers: Sequence[float], alpha: float) -> float:
    """Return the half width of the interval around the peers' mean that holds the next one with probability 1 - ``alpha``;
    infinite with fewer than ``FEWEST``."""
    count = len(peers)
    if count < FEWEST:
        return math.inf
    return t_quantile(1 - alpha / 2, count - 1) * stdev(peers) * math.sqrt(1 + 1 / count)


def apart(value: float, peers: Sequence[float], alpha: float, least: float = 0.0) -> float | None:
    """Return how far a value is above its peers' mean, if it is outside their interval and farther than ``least`` away; else
    None."""
    width = half_width(peers, alpha)
    if math.isinf(width):
        return None
    above = value - fmean(peers)
    return above if abs(above) > max(width, least) else None


def midranks(values: Sequence[float] | Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of their ranks."""
    _, of, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[of]
    return ranks
