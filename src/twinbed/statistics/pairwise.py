"""Intervals and tests of differences of levels' means: one pair alone, or several simultaneously. each by itself, and
simultaneously.

``by_itself`` is Student's t.  ``tukey_kramer`` is for all pairs of k means at once (Tukey 1953, Kramer 1956).  With each pair's
own standard error and degrees of freedom by Welch it is Games & Howell's test (1976), somewhat liberal for fewer than six
values a mean.  Function ``sidak`` is for a chosen number of two-sided intervals at once: it is conservative whatever their
correlation (Šidák 1967).  A standard error is above 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinbed.statistics import studentized_range
from twinbed.statistics.distribution import t_quantile, t_two_sided


@dataclass(frozen=True, slots=True)
class PairTest:
    """Half width of an interval about a difference, and the p-value of no difference."""

    half_width: float
    p: float


def by_itself(difference: float, standard_error: float, freedom: float, confidence: float) -> PairTest:
    """Apply Student's t: right for a pair that was chosen before the data were seen."""
    return PairTest(
        t_quantile((1 + confidence) / 2, freedom) * standard_error, t_two_sided(difference / standard_error, freedom)
    )


def sidak(difference: float, standard_error: float, freedom: float, confidence: float, count: int) -> PairTest:
    """Test one of ``count`` differences whose intervals hold together at ``confidence``."""
    each = confidence ** (1 / count)
    p = t_two_sided(difference / standard_error, freedom)
    # This is 1 - (1 - p)^count, without loss where p is small.
    together = -math.expm1(count * math.log1p(-p)) if p < 1 else 1.0
    return PairTest(t_quantile((1 + each) / 2, freedom) * standard_error, together)


def tukey_kramer(difference: float, standard_error: float, freedom: float, confidence: float, means: int) -> PairTest:
    """Test one of all pairs of ``means`` means."""
    if means == 2:
        return by_itself(difference, standard_error, freedom, confidence)
    statistic = abs(difference) / standard_error * math.sqrt(2)
    half_width = studentized_range.quantile(confidence, means, freedom) / math.sqrt(2) * standard_error
    return PairTest(half_width, 1 - studentized_range.distribution(statistic, means, freedom))
