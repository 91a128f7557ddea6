"""How much two samples vary: are their spreads the same, and how many times is one the other?

Relative spread is the standard deviation of the logarithms: that of ratios, which changes with no unit, and which is within 1 %
of the coefficient of variation where that is at most 15 % and values are about log-normal.
Test of equal spreads: Brown and Forsythe (1974, J. Am. Stat. Assoc. 69:364), Levene's with medians.
Ratio of standard deviations: Bonett (2006, Appl. Psychol. Meas. 30:432), which lets the kurtosis be what it is.  His error of
the logarithm takes both samples as equally spread; here it is taken at each limit, where the second sample is stretched to
the first's spread by just that ratio, so that it holds for unequal ones as well (as statpsych does for R).  Needs at least
LEAST values each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from scipy.special import fdtrc, ndtri

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import fourth_moment, variance, varies

LEAST = 5
"""Values a sample that the interval of a ratio of standard deviations needs."""
LEAST_TEST = 3
"""Values a sample that the test needs: two are equally far from their median, whatever their spread."""
STEPS = 50


def brown_forsythe(values: Sequence[float], reference: Sequence[float]) -> float | None:
    """Two-sided p-value that both samples spread alike; None for fewer than LEAST_TEST values, or where neither varies."""
    if min(len(values), len(reference)) < LEAST_TEST or not (varies(values) or varies(reference)):
        return None
    groups = [[abs(value - median(group)) for value in group] for group in (values, reference)]
    total, grand = sum(map(len, groups)), fmean([value for group in groups for value in group])
    between = sum(len(group) * (fmean(group) - grand) ** 2 for group in groups)
    within = sum((len(group) - 1) * variance(group) for group in groups)
    if within == 0:
        return 1.0 if between == 0 else 0.0
    return float(fdtrc(1, total - 2, between / (within / (total - 2))))


def deviation_ratio_interval(values: Sequence[float], reference: Sequence[float], level: float) -> Bounds | None:
    """Of the ratio of standard deviations; None for fewer than LEAST values, or where a sample does not vary."""
    n, m = len(values), len(reference)
    if min(n, m) < LEAST or not varies(values) or not varies(reference):
        return None
    z = float(ndtri((1 + level) / 2))
    found = variance(values) / variance(reference)
    centre = math.log(found * (n / (n - z)) * ((m - z) / m))
    low, high = (_limit(values, reference, centre, sign * z, math.sqrt(found)) for sign in (-1, 1))
    return Bounds(low, high, level)


def _limit(values: Sequence[float], reference: Sequence[float], centre: float, z: float, start: float) -> float:
    """The ratio whose error, taken at itself, puts it z errors from the centre."""
    n, m = len(values), len(reference)
    fourth_one, fourth_two = fourth_moment(values), fourth_moment(reference)
    square_one, square_two = (n - 1) * variance(values), (m - 1) * variance(reference)
    ratio = start
    for _ in range(STEPS):
        kurtosis = (n + m) * (fourth_one + ratio**4 * fourth_two) / (square_one + ratio**2 * square_two) ** 2
        squared = (kurtosis - (n - 3) / n) / (n - 1) + (kurtosis - (m - 3) / m) / (m - 1)
        before, ratio = ratio, math.exp((centre + z * math.sqrt(max(0.0, squared))) / 2)
        if abs(ratio - before) <= 1e-12 * ratio:
            break
    return ratio
