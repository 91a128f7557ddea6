"""Estimates of a cell's mean, and the seeds' two rules of thumb on pairs of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from scipy.special import stdtrit

from twinbed.analyses.compare.equivalence import variance
from twinbed.model.result import Estimate, Interval

OUTLIER_LEVEL = 0.001
"""Significance of Grubbs's test, small because it is asked of every cell."""


def estimate(values: Sequence[float], confidence: float) -> Estimate:
    """Mean, standard deviation, and Student's t interval of the mean, for which means are taken as normal."""
    n = len(values)
    if n == 0:
        return Estimate(0, None, None, None, ())
    mean = fmean(values)
    if n == 1:
        return Estimate(1, mean, None, None, tuple(values))
    stdev = math.sqrt(variance(values))
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * stdev / math.sqrt(n)
    return Estimate(n, mean, stdev, Interval(mean - half, mean + half, confidence), tuple(values))


def within_rule(testbed: Estimate, reference: Estimate, margin: float) -> bool | None:
    """Whether the means differ by no more than the margin, as a share of the reference's (ICNC, section II)."""
    if testbed.mean is None or reference.mean is None:
        return None
    return abs(testbed.mean - reference.mean) <= margin * abs(reference.mean)


def intervals_overlap(testbed: Estimate, reference: Estimate) -> bool | None:
    """Whether the intervals of the means have a point in common (ICNC, section II: "a stronger definition")."""
    one, two = testbed.interval, reference.interval
    return None if one is None or two is None else one.low <= two.high and two.low <= one.high


def holds_outlier(values: Sequence[float]) -> bool:
    """Grubbs's two-sided test for one outlier (1969, Technometrics 11:1) at OUTLIER_LEVEL; False for fewer than 5 values."""
    n = len(values)
    if n < 5:
        return False
    mean, stdev = fmean(values), math.sqrt(variance(values))
    if stdev == 0:
        return False
    t2 = float(stdtrit(n - 2, 1 - OUTLIER_LEVEL / (2 * n))) ** 2
    return max(abs(value - mean) for value in values) / stdev > (n - 1) / math.sqrt(n) * math.sqrt(t2 / (n - 2 + t2))
