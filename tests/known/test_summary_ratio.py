"""Ratios of means from summaries, against scipy's Welch statistic from summaries, exact degrees of freedom, and arithmetic by
hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from twinbed.statistics.ratio import Summary, summary_ratio_test

summaries = st.builds(Summary, st.integers(1, 1000), st.integers(1, 100), st.integers(2, 40))


def welch_t(one: Summary, two: Summary, theta: float) -> float:
    """scipy's t of x against theta y: the test behind each edge of the region and each end of Fieller's interval."""
    given = (one.mean, one.error * math.sqrt(one.n), one.n)
    against = (theta * two.mean, theta * two.error * math.sqrt(two.n), two.n)
    return float(stats.ttest_ind_from_stats(*given, *against, equal_var=False).statistic)


def degrees(one: Summary, two: Summary) -> float:
    """Satterthwaite's, at the ratio found, in exact fractions."""
    a = Fraction(one.error) ** 2
    b = (Fraction(one.mean) / Fraction(two.mean) * Fraction(two.error)) ** 2
    return float((a + b) ** 2 / (a**2 / (one.n - 1) + b**2 / (two.n - 1)))


@given(summaries, summaries, st.sampled_from([0.02, 0.1, 0.5]))
def test_tests_at_the_edges_and_ends_are_welchs(one: Summary, two: Summary, margin: float) -> None:
    found, df = summary_ratio_test(one, two, margin, 0.05), degrees(one, two)
    at_low, at_high = (welch_t(one, two, edge) for edge in (1 / (1 + margin), 1 + margin))
    assert found.ratio == pytest.approx(one.mean / two.mean)
    assert found.p_equivalent == pytest.approx(max(stats.t.sf(at_low, df), stats.t.cdf(at_high, df)), rel=1e-6, abs=1e-12)
    different = min(1, 2 * min(stats.t.sf(at_high, df), stats.t.cdf(at_low, df)))
    assert found.p_different == pytest.approx(different, rel=1e-6, abs=1e-12)
    quantile = stats.t.ppf(0.95, df)
    if found.low is None or found.high is None:
        # Unbounded exactly where the reference is not shown to differ from 0.
        assert two.mean / two.error <= quantile * (1 + 1e-9)
        return
    assert found.low <= found.ratio <= found.high
    if found.low > 0:
        assert welch_t(one, two, found.low) == pytest.approx(quantile, rel=1e-5)
    if found.high < 1e4:
        assert welch_t(one, two, found.high) == pytest.approx(-quantile, rel=1e-5)


def test_a_reference_without_spread_leaves_one_samples_t() -> None:
    """Ten values of mean 103 and standard error 1 against 100 exactly: t(0.95, 9) = 1.833, so 1.03 ± 0.01833."""
    found = summary_ratio_test(Summary(103, 1, 10), Summary(100, 0, 10), 0.10, 0.05)
    assert (found.low, found.high) == pytest.approx((1.03 - 0.018331, 1.03 + 0.018331), abs=1e-5)
    # t = (110 - 103) / 1 = 7 and (103 - 90.9) / 1 = 12.1 on 9 degrees of freedom: p(7) = 0.0000315 (one-sided tables).
    assert found.p_equivalent == pytest.approx(3.15e-5, abs=2e-7)


def test_neither_varies() -> None:
    inside, outside = (summary_ratio_test(Summary(value, 0, 3), Summary(100, 0, 3), 0.10, 0.05) for value in (110, 111))
    assert (inside.p_equivalent, inside.p_different) == (0.0, 1.0)
    assert (outside.p_equivalent, outside.p_different) == (1.0, 0.0)


def test_what_cannot_be_compared_is_refused() -> None:
    for one, two in ((Summary(1, 1, 1), Summary(1, 1, 2)), (Summary(1, 1, 2), Summary(0, 1, 2))):
        with pytest.raises(ValueError, match="two values each"):
            summary_ratio_test(one, two, 0.1, 0.05)
