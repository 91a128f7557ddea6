"""Tests of what analysis of variance assumes: equal variances (Brown-Forsythe, Bartlett) and normal errors.

Each gives a statistic with its p-value, or None where the data do not allow the test. Brown-Forsythe (1974; Levene's test about
medians) is valid for errors that are not normal; Bartlett's (1937) is more powerful where they are.  Normality is Shapiro &
Wilk's (1965, Royston's AS R94) up to 5,000 residuals, where its p-value is known, else Anderson & Darling's with both
parameters estimated (D'Agostino & Stephens, Goodness-of-fit techniques, 1986, Table 4.9).

Shapiro and Wilk's test of normality, for 3 to 5000 values.

Royston (1995), Appl. Stat. 44:547, Algorithm AS R94, without censoring; as in R's ``shapiro.test`` and ``scipy.stats.shapiro``.
The latter's package takes longer to import than all else that a report needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tested:
    """A statistic with its degrees of freedom (none where its distribution has none) and its p-value."""

    name: str
    statistic: float
    freedom: tuple[float, ...]
    p: float


def brown_forsythe(groups: Sequence[Floats]) -> Tested | None:
    """Test equal variances of groups of two values or more; None for fewer than two such groups, or if no group varies about
    its median."""
    used = [group for group in groups if len(group) > 1]
    spreads = [np.abs(group - np.median(group)) for group in used]
    if len(used) < 2:
        return None
    count, n = len(used), sum(len(group) for group in used)
    mean = math.fsum(float(value) for group in spreads for value in group) / n
    means = [math.fsum(group) / len(group) for group in spreads]
    between = math.fsum(len(group) * (own - mean) ** 2 for group, own in zip(spreads, means, strict=True))
    within = math.fsum(float(np.sum((group - own) ** 2)) for group, own in zip(spreads, means, strict=True))
    if n <= count or within <= 1e-20 * max(between, mean * mean) or mean == 0:
        return None
    from twinbed.statistics.distribution import f_tail

    statistic = between / (count - 1) / (within / (n - count))
    return Tested("Brown-Forsythe", statistic, (count - 1, n - count), f_tail(statistic, count - 1, n - count))


def bartlett(groups: Sequence[Floats]) -> Tested | None:
    """Test equal variances of normal values; None if a group of two values or more does not vary: its logarithm is not
    defined."""
    from scipy.special import chdtrc

    used = [group for group in groups if len(group) > 1]
    if len(used) < 2:
        return None
    freedoms = [len(group) - 1 for group in used]
    variances = [float(np.var(group, ddof=1)) for group in used]
    if min(variances) <= 0:
        return None
    total = sum(freedoms)
    pooled = math.fsum(f * v for f, v in zip(freedoms, variances, strict=True)) / total
    raw = total * math.log(pooled) - math.fsum(f * math.log(v) for f, v in zip(freedoms, variances, strict=True))
    correction = 1 + (math.fsum(1 / f for f in freedoms) - 1 / total) / (3 * (len(used) - 1))
    statistic = max(0.0, raw / correction)
    return Tested("Bartlett", statistic, (len(used) - 1,), float(chdtrc(len(used) - 1, statistic)))


def normality(residuals: Floats) -> Tested | None:
    """Test normality; None for fewer than three residuals, or if they do not vary."""
    if len(residuals) < 3 or float(np.ptp(residuals)) <= 0:
        return None
    if len(residuals) > MOST:
        return anderson_darling(residuals)
    statistic, p = shapiro_wilk(residuals)
    return Tested("Shapiro-Wilk", statistic, (), p)


def anderson_darling(values: Floats) -> Tested:
    """Return A² with its correction for size, and the p-value of Stephens's approximation."""
    from scipy.special import log_ndtr

    n = len(values)
    z = np.sort((values - np.mean(values)) / np.std(values, ddof=1))
    at = 2 * np.arange(1, n + 1) - 1
    a2 = -n - math.fsum(at * (log_ndtr(z) + log_ndtr(-z[::-1]))) / n
    a2 *= 1 + 0.75 / n + 2.25 / n**2
    if a2 >= 0.6:
        # Beyond 13 the quadratic turns upwards again.
        bounded = min(a2, 13.0)
        p = math.exp(1.2937 - 5.709 * bounded + 0.0186 * bounded**2)
    elif a2 >= 0.34:
        p = math.exp(0.9177 - 4.279 * a2 - 1.38 * a2**2)
    elif a2 >= 0.2:
        p = 1 - math.exp(-8.318 + 42.796 * a2 - 59.938 * a2**2)
    else:
        p = 1 - math.exp(-13.436 + 101.14 * a2 - 223.73 * a2**2)
    return Tested("Anderson-Darling", a2, (), min(1.0, max(0.0, p)))


def normal_quantiles(n: int) -> Floats:
    """Return the expected positions of n sorted values of a standard normal, as R's ``qnorm(ppoints(n))``."""
    from scipy.special import ndtri

    offset = 3 / 8 if n <= 10 else 1 / 2
    return np.asarray(ndtri((np.arange(1, n + 1) - offset) / (n + 1 - 2 * offset)))


LEAST, MOST = 3, 5000
FIRST = (0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056)
SECOND = (0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
"""The largest and second largest weight, as polynomials of 1/sqrt(n)."""
SMALL_END, SMALL_MEAN, SMALL_DEVIATION = (
    (-2.273, 0.459),
    (0.544, -0.39978, 0.025054, -6.714e-4),
    (1.3822, -0.77857, 0.062767, -0.0020322),
)
"""Polynomials of n, for up to 11 values."""
LARGE_MEAN, LARGE_DEVIATION = (-1.5861, -0.31082, -0.083751, 0.0038915), (-0.4803, -0.082676, 0.0030302)
"""Polynomials of ln n, from 12 values on."""


def shapiro_wilk(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Return W and the p-value. Raises ValueError for too few or too many values, or if they do not vary."""
    n = len(values)
    if not LEAST <= n <= MOST:
        raise ValueError(f"{n} values, expected {LEAST} to {MOST}")
    x = np.sort(np.asarray(values, dtype=np.float64))
    x = x - float(np.median(x))
    largest = float(np.max(np.abs(x)))
    if not largest > 0:
        raise ValueError("the values do not vary")
    x = x / largest
    weights = _weights(n)
    centred = x - float(np.mean(x))
    squares = math.fsum(centred**2)
    half = n // 2
    slope = math.fsum(weights * (x[::-1][:half] - x[:half]))
    # This is 1 - W as a product of differences, which loses no digits where W is near 1.
    root = math.sqrt(2 * math.fsum(weights**2) * squares)
    rest = max(0.0, (root - slope) * (root + slope) / root**2)
    return 1 - rest, _p(n, rest)


def _weights(n: int) -> NDArray[np.float64]:
    """Return the weights of the larger half of the sorted values; the smaller half's have the opposite sign."""
    if n == 3:
        return np.array([math.sqrt(0.5)])
    scores = -np.asarray(ndtri((np.arange(1, n // 2 + 1) - 0.375) / (n + 0.25)))
    sum_of_squares = 2 * math.fsum(scores**2)
    corrected = 1 if n <= 5 else 2
    corrected_weights = np.array([float(polyval(1 / math.sqrt(n), polynomial)) for polynomial in (FIRST, SECOND)[:corrected]])
    corrected_weights += scores[:corrected] / math.sqrt(sum_of_squares)
    left = sum_of_squares - 2 * math.fsum(scores[:corrected] ** 2)
    others = scores[corrected:] / math.sqrt(left / (1 - 2 * math.fsum(corrected_weights**2)))
    return np.concatenate([corrected_weights, others])


def _p(n: int, rest: float) -> float:
    """Return the p-value; ``rest`` is 1 - W."""
    if n == 3:
        return min(1.0, max(0.0, 6 / math.pi * (math.asin(math.sqrt(1 - rest)) - math.asin(math.sqrt(0.75)))))
    if rest == 0:
        return 1.0
    y = math.log(rest)
    if n <= 11:
        end = float(polyval(n, SMALL_END))
        if y >= end:
            return 0.0
        y = -math.log(end - y)
        mean, deviation = float(polyval(n, SMALL_MEAN)), math.exp(float(polyval(n, SMALL_DEVIATION)))
    else:
        mean = float(polyval(math.log(n), LARGE_MEAN))
        deviation = math.exp(float(polyval(math.log(n), LARGE_DEVIATION)))
    return math.exp(float(log_ndtr((mean - y) / deviation)))


@dataclass(frozen=True, slots=True)
class Residual:
    """One observation: the model's prediction, the residual, and where a normal error of its rank would lie."""

    predicted: float
    residual: float
    normal_quantile: float
