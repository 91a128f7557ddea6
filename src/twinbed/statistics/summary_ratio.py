"""The ratio of two means of which only summaries are known: mean, standard error, number of values.

If the values are known, ratios are better compared on the scale of logarithms. Summaries allow only the tests of mean(x) -
theta mean(y) (Fieller 1954, J. R. Stat. Soc. B 16:175; for equivalence Hauschke et al. 1999, Stat. Med. 18:93) with
Satterthwaite's degrees of freedom (1946, Biometrics Bull. 2:110) at the observed ratio. Means are assumed to be normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinbed.statistics.moments import welch_df
from twinbed.statistics.ratio import fieller_interval
from twinbed.statistics.region import p_values


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean of ``n`` values and its standard error, s / sqrt(n)."""

    mean: float
    error: float
    n: int


@dataclass(frozen=True, slots=True)
class SummaryTest:
    """``low`` and ``high`` at 1 - 2 alpha, None where the reference is not shown to differ from 0."""

    ratio: float
    low: float | None
    high: float | None
    p_equivalent: float
    """The larger of the two one-sided p-values; equivalent where it is at most alpha."""
    p_different: float
    """The two-sided p-value for a ratio outside of 1/(1+margin) to 1+margin."""


def ratio_test(one: Summary, reference: Summary, margin: float, alpha: float) -> SummaryTest:
    """Compare two means of at least two values each, the reference's above 0. Raises ValueError for others."""
    if min(one.n, reference.n) < 2 or reference.mean <= 0:
        raise ValueError("needs two values each, and a reference above 0")
    ratio = one.mean / reference.mean
    low_edge, high_edge = 1 / (1 + margin), 1 + margin
    a, b = one.error**2, reference.error**2
    if a == b == 0:
        inside = low_edge <= ratio <= high_edge
        return SummaryTest(ratio, ratio, ratio, 0.0 if inside else 1.0, 1.0 if inside else 0.0)
    spread = a + ratio**2 * b
    df = welch_df(a, one.n, ratio**2 * b, reference.n) if spread else float(min(one.n, reference.n) - 1)

    def t(theta: float) -> float:
        return (one.mean - theta * reference.mean) / math.sqrt(a + theta**2 * b)

    p_equivalent, p_different = p_values(t(low_edge), t(high_edge), df)
    interval = fieller_interval(one.mean, reference.mean, a, b, df, alpha)
    return SummaryTest(ratio, interval and interval.low, interval and interval.high, p_equivalent, p_different)
