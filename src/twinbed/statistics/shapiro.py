"""Shapiro and Wilk's test of normality, for 3 to 5000 values.

Royston (1995), Appl. Stat. 44:547, Algorithm AS R94, without censoring; as in R's ``shapiro.test`` and
``scipy.stats.shapiro``.  The latter's package takes longer to import than all else that a report needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

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
    about = x - float(np.mean(x))
    squares = math.fsum(about**2)
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
    corrected_weights = np.array([float(polyval(1 / math.sqrt(n), each)) for each in (FIRST, SECOND)[:corrected]])
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
