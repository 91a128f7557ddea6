"""Power of the tests on logarithms: how likely a study of given size is to reach a verdict on a ratio.

The tests are Welch's t on the difference of two means of logarithms, compared with a region of [-edge, edge]: two one-sided
tests at alpha for "equivalent" (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657), one two-sided test of being outside at
alpha for "different".  Given the two sample variances, the difference of means is normal and independent of them, so power is
the mean, over both chi-square distributions, of a normal probability. The two integrals are by Gauss-Legendre quadrature on the
distributions' quantiles.  If one variance is 0 this is Owen's Q (1965, Biometrika 52:437) with n - 1 degrees of freedom.
Welch's own approximation is the only one, and the program makes it too.

A pilot knows the standard deviation badly.  ``upper_deviation`` is its upper one-sided confidence limit, at 80 % as Browne
(1995, Stat. Med. 14:1933) proposes for planning. A study planned with it has the requested power in four cases of five, one
planned with the standard deviation itself in about one of two.

Units: differences, deviations and edges are of natural logarithms.  Limits: values are lognormal and independent; accurate to
10^-4 of power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, stdtr, stdtrit

from twinbed.statistics.moments import standard_error, welch_df
from twinbed.statistics.sample import Sample

Floats = NDArray[np.float64]

POWER = 0.80
"""The chance that the replicates that ``replicates_needed`` gives show equivalence."""
KNOWN = 0.60
"""Confidence of the upper limit of the standard deviation in ``replicates_needed``. With 3 to 10 values the chance is then
above 80 %, except for ratios near the edge of the region with large spreads, few of which get a number at all
(docs/coverage.md)."""
MOST_REPLICATES = 1000
"""More than this is not worth proposing: the ratio lies too near the edge of the region."""
FEWEST = 3
"""The least number of replicates a testbed to propose: with two, Welch's approximation oversteps its level."""
_NODES = 48


def power_equivalent(
    difference: float, deviations: tuple[float, float], counts: tuple[int, int], edge: float, alpha: float
) -> float:
    """Return the probability that both one-sided tests reject, if the true difference of means of logarithms is
    ``difference``."""
    scatter, errors, df, weights = _studies(deviations, counts)
    room = edge - _critical(alpha, df) * errors
    if scatter == 0:
        return float(abs(difference) <= edge)
    inside = ndtr((room - difference) / scatter) - ndtr((-room - difference) / scatter)
    return float(weights @ np.where(room > 0, inside, 0.0))


def power_different(
    difference: float, deviations: tuple[float, float], counts: tuple[int, int], edge: float, alpha: float
) -> float:
    """Return the probability that the two-sided test of being outside the region rejects."""
    scatter, errors, df, weights = _studies(deviations, counts)
    if scatter == 0:
        return float(abs(difference) > edge)
    bound = edge + _critical(alpha / 2, df) * errors
    return float(weights @ (ndtr((difference - bound) / scatter) + ndtr((-difference - bound) / scatter)))


def replicates(power: Callable[[int], float], target: float, most: int) -> int | None:
    """Return the smallest number of replicates from FEWEST on whose power is at least ``target``; None if ``most`` are too few.
    ``power`` must grow with the number."""
    low, high = FEWEST, FEWEST
    while power(high) < target:
        if high >= most:
            return None
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        if power(middle) < target:
            low = middle + 1
        else:
            high = middle
    return high


def replicates_needed(
    values: Sequence[float], reference: Sequence[float], margin: float, alpha: float, *, paired: bool = False
) -> int | None:
    """Return the replicates a testbed, or pairs, of which so many new ones show equivalence with a chance of POWER.

    It is the chance of a new study, given the values: its ratio has their error in addition to its own, and its standard
    deviations are their upper limits at KNOWN. None if values are not all positive, or MOST_REPLICATES do not give that chance:
    the ratio is outside the region, near its edge, or too badly known.
    """
    samples = Sample.of(values), Sample.of(reference)
    if min(sample.least for sample in samples) <= 0:
        return None
    x, y = (sample.logarithms for sample in samples)
    edge, difference = math.log1p(margin), x.average - y.average
    error, df = standard_error(x, y, paired)
    if not error:
        return FEWEST if abs(difference) < edge else None
    scale = upper_deviation(1.0, max(2, round(df) + 1), KNOWN)
    squares = (len(x) * error**2, 0.0) if paired else (x.variance, y.variance)

    def chance(n: int) -> float:
        a, b = (scale**2 * square / n for square in squares)
        room = edge - float(stdtrit(n - 1 if paired else welch_df(a, n, b, n), 1 - alpha)) * math.sqrt(a + b)
        spread = math.sqrt(error**2 + a + b)
        return float(stdtr(df, (room - difference) / spread) - stdtr(df, (-room - difference) / spread)) if room > 0 else 0.0

    return replicates(chance, POWER, MOST_REPLICATES)


def upper_deviation(deviation: float, n: int, confidence: float = 0.80) -> float:
    """Return the upper one-sided confidence limit of the standard deviation of normal values, from that of ``n`` of them."""
    return deviation * math.sqrt((n - 1) / _chi_square(n - 1, 1 - confidence))


def _chi_square(df: float, probability: float) -> float:
    return float(2 * gammaincinv(df / 2, probability))


def _studies(deviations: tuple[float, float], counts: tuple[int, int]) -> tuple[float, Floats, Floats, Floats]:
    """Return the standard deviation of the observed difference, then for a grid of pairs of possible sample variances the
    standard error, Welch's degrees of freedom, and the weight."""
    true = [deviation**2 / n for deviation, n in zip(deviations, counts, strict=True)]
    (variances, w1), (reference_variances, w2) = (_variances(n - 1) for n in counts)
    a, b = np.meshgrid(true[0] * variances, true[1] * reference_variances, indexing="ij")
    total = a + b
    share = np.divide(a, total, out=np.full_like(a, 0.5), where=total > 0)
    df = 1 / (share**2 / (counts[0] - 1) + (1 - share) ** 2 / (counts[1] - 1))
    return math.sqrt(sum(true)), np.sqrt(total).ravel(), df.ravel(), np.outer(w1, w2).ravel()


@lru_cache(maxsize=1024)
def _variances(df: int) -> tuple[Floats, Floats]:
    """Return sample variances of unit normal values at the nodes of a quadrature over their distribution, and the weights."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return 2 * gammaincinv(df / 2, (nodes + 1) / 2) / df, weights / 2


def _critical(tail: float, df: Floats) -> Floats:
    """Return Student's t with ``tail`` above it, from a table: quantiles of thousands of pairs would be too slow."""
    inverse, table = _critical_table(tail)
    return np.asarray(np.interp(1 / df, inverse, table))


@lru_cache(maxsize=64)
def _critical_table(tail: float) -> tuple[Floats, Floats]:
    inverse = np.linspace(1e-9, 1.0, 4001) ** 2
    return inverse, stdtrit(1 / inverse, 1 - tail)
