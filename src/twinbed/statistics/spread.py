"""Tests whether the spreads of two samples are equal, and the ratio of the spreads.

Relative spread is the standard deviation of the logarithms, which no unit changes. It is within 1 % of a coefficient of
variation of at most 15 % if values are about log-normal. Ratio of standard deviations, its interval and the test that it is 1:
Bonett (2006, Appl. Psychol. Meas. 30:432), which assumes nothing about the kurtosis. His error of the logarithm assumes equal
spreads of both samples. For an interval the error is taken at each limit, where the second sample is stretched to the first's
spread by exactly that ratio. It is then valid for unequal spreads too (as statpsych does for R).  Needs at least LEAST values
each. Test of equal spreads: Brown and Forsythe (1974, J. Am. Stat. Assoc. 69:364), Levene's with medians.  For five values each
it rejects equal spreads in 1 % of tries where 5 % are allowed, and detects a fivefold spread in 18 % of tries where Bonett's
test does in 53 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from scipy.special import fdtrc, ndtr, ndtri

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import variance, varies
from twinbed.statistics.sample import Sample

LEAST = 5
"""Values a sample that the interval of a ratio of standard deviations needs."""
LEAST_TEST = 3
"""Values a sample that Brown and Forsythe's test needs: two are equally far from their median, whatever their spread."""
STEPS = 50


def brown_forsythe(values: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the two-sided p-value that both samples spread alike; None for fewer than LEAST_TEST values, or if neither
    varies."""
    if min(len(values), len(reference)) < LEAST_TEST or not (varies(values) or varies(reference)):
        return None
    return _levene([Sample.of(group).about_median for group in (values, reference)])


def brown_forsythe_at_values(values: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the larger of the p-values of Brown and Forsythe's test about either middle value; None as for that test. If half
    of an even number of runs is slow, the median lies between both halves, and all values are as far from it: a large spread
    without any doubt. About an observed value half of the deviations are small, as for any other share of slow runs."""
    if min(len(values), len(reference)) < LEAST_TEST or not (varies(values) or varies(reference)):
        return None
    ways = [
        [Sample([abs(value - middle) for value in group]) for middle in {group[(len(group) - 1) // 2], group[len(group) // 2]}]
        for group in (Sample.of(sample).ordered for sample in (values, reference))
    ]
    return max(_levene([own, other]) for own in ways[0] for other in ways[1])


def _levene(groups: Sequence[Sample]) -> float:
    """Return the p-value of equal means of deviations, by the analysis of variance."""
    total = sum(map(len, groups))
    grand = math.fsum(chain.from_iterable(groups)) / total
    between = sum(len(group) * (group.average - grand) ** 2 for group in groups)
    within = sum((len(group) - 1) * group.variance for group in groups)
    if within == 0:
        return 1.0 if between == 0 else 0.0
    return float(fdtrc(1, total - 2, between / (within / (total - 2))))


def equal_deviations(values: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the two-sided p-value that standard deviations are the same, by Bonett; None as for the interval. It is at most 5
    % exactly where the 95 % interval excludes 1."""
    n, m = len(values), len(reference)
    if min(n, m) < LEAST or not varies(values) or not varies(reference):
        return None
    z, quotient = float(ndtri(0.975)), math.sqrt(variance(values)) / math.sqrt(variance(reference))
    centre = 2 * math.log(quotient) + math.log((n / (n - z)) * ((m - z) / m))
    error = _error(_Shape.of(values), _Shape.of(reference), 1 / quotient)
    return 2 * float(ndtr(-abs(centre) / error)) if error else float(centre == 0)


def deviation_ratio_interval(values: Sequence[float], reference: Sequence[float], level: float) -> Bounds | None:
    """Return the interval of the ratio of standard deviations; None for fewer than LEAST values, or if a sample does not
    vary."""
    n, m = len(values), len(reference)
    if min(n, m) < LEAST or not varies(values) or not varies(reference):
        return None
    z = float(ndtri((1 + level) / 2))
    quotient = math.sqrt(variance(values)) / math.sqrt(variance(reference))
    centre = math.log((n / (n - z)) * ((m - z) / m))
    own, other = _Shape.of(values), _Shape.of(reference)
    low, high = (quotient * _limit(own, other, centre, sign * z) for sign in (-1, 1))
    return Bounds(low, high, level)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The facts that Bonett's error needs of a standardised sample."""

    n: int
    fourth: float

    @classmethod
    def of(cls, values: Sequence[float]) -> _Shape:
        return cls(len(values), Sample.of(values).standardised_fourth)


def _limit(own: _Shape, reference: _Shape, centre: float, z: float) -> float:
    """Return the ratio whose error, taken at itself, puts it z errors from the centre."""
    ratio = 1.0
    for _ in range(STEPS):
        before, ratio = ratio, math.exp((centre + z * _error(own, reference, ratio)) / 2)
        if abs(ratio - before) <= 1e-12 * ratio:
            break
    return ratio


def _error(own: _Shape, reference: _Shape, ratio: float) -> float:
    """Return the standard error of the logarithm of the ratio of variances, if that is the square of ``ratio``."""
    n, m = own.n, reference.n
    kurtosis = (n + m) * (own.fourth + ratio**4 * reference.fourth) / ((n - 1) + ratio**2 * (m - 1)) ** 2
    return math.sqrt(max(0.0, (kurtosis - (n - 3) / n) / (n - 1) + (kurtosis - (m - 3) / m) / (m - 1)))
