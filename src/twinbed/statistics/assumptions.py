"""Tests of what analysis of variance assumes: equal variances (Brown-Forsythe, Bartlett) and normal errors.

Each gives a statistic with its p-value, or None where the data do not allow the test. Brown-Forsythe (1974; Levene's test about
medians) is valid for errors that are not normal; Bartlett's (1937) is more powerful where they are.  Normality is Shapiro &
Wilk's (1965, Royston's AS R94) up to 5,000 residuals, where its p-value is known, else Anderson & Darling's with both
parameters estimated (D'Agostino & Stephens, Goodness-of-fit techniques, 1986, Table 4.9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.shapiro import MOST, shapiro_wilk

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
