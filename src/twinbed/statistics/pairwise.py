"""Intervals and tests of differences of levels' means: each by itself, and simultaneously.

``by_itself``: Student's t.  ``tukey_kramer``: all pairs of k means at once (Tukey 1953, Kramer 1956).  ``sidak``: a chosen
number of two-sided intervals at once; conservative whatever their correlation (Šidák 1967).  ``games_howell``: all pairs where
variances differ, with Welch's degrees of freedom (Games & Howell 1976); fewer than six values a group make it somewhat liberal.
Bounds are None where the standard error is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinbed.statistics.quantiles import t_quantile, t_two_sided


@dataclass(frozen=True, slots=True)
class Judged:
    """Half width of an interval about a difference, and the p-value of no difference."""

    half_width: float
    p: float


def by_itself(difference: float, standard_error: float, freedom: float, confidence: float) -> Judged | None:
    """Student's t: right for a pair that was chosen before the data were seen."""
    if standard_error <= 0:
        return None
    return Judged(t_quantile((1 + confidence) / 2, freedom) * standard_error, t_two_sided(difference / standard_error, freedom))


def sidak(difference: float, standard_error: float, freedom: float, confidence: float, count: int) -> Judged | None:
    """As one of ``count`` intervals that hold together at ``confidence``."""
    if standard_error <= 0:
        return None
    each = confidence ** (1 / count)
    p = t_two_sided(difference / standard_error, freedom)
    # 1 - (1 - p)^count, without loss where p is small.
    together = -math.expm1(count * math.log1p(-p)) if p < 1 else 1.0
    return Judged(t_quantile((1 + each) / 2, freedom) * standard_error, together)


def tukey_kramer(difference: float, standard_error: float, freedom: float, confidence: float, means: int) -> Judged | None:
    """As one of all pairs of ``means`` means."""
    from scipy.stats import studentized_range

    if standard_error <= 0:
        return None
    if means == 2:
        return by_itself(difference, standard_error, freedom, confidence)
    statistic = abs(difference) / standard_error * math.sqrt(2)
    return Judged(
        range_quantile(confidence, means, freedom) / math.sqrt(2) * standard_error,
        float(min(1.0, max(0.0, studentized_range.sf(statistic, means, freedom)))),
    )


_QUANTILES: dict[tuple[float, int, float], float] = {}


def range_quantile(confidence: float, means: int, freedom: float) -> float:
    """Quantile of the studentized range, found once for all pairs of a factor: each takes some milliseconds."""
    from scipy.stats import studentized_range

    key = (confidence, means, freedom)
    if key not in _QUANTILES:
        _QUANTILES[key] = float(studentized_range.ppf(confidence, means, freedom))
    return _QUANTILES[key]


@dataclass(frozen=True, slots=True)
class Group:
    """A level's values, summed up; ``variance`` has n - 1 in its denominator."""

    n: int
    mean: float
    variance: float


def welch(one: Group, two: Group) -> tuple[float, float] | None:
    """Standard error of two - one and its degrees of freedom (Welch, Satterthwaite); None where neither varies or n is 1."""
    if min(one.n, two.n) < 2 or (one.variance == 0 and two.variance == 0):
        return None
    a, b = one.variance / one.n, two.variance / two.n
    return math.sqrt(a + b), (a + b) ** 2 / (a * a / (one.n - 1) + b * b / (two.n - 1))


def games_howell(one: Group, two: Group, confidence: float, means: int) -> Judged | None:
    """As one of all pairs of ``means`` means, with variances of their own."""
    found = welch(one, two)
    return None if found is None else tukey_kramer(two.mean - one.mean, *found, confidence, means)
