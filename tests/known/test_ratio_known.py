"""Ratios, intervals and adjustments against numbers that others published; each says where its numbers come from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from twinbed.analyses.compare.estimates import estimate, intervals_overlap, within_rule
from twinbed.model.comparison import Estimate
from twinbed.model.result import Interval
from twinbed.statistics.moments import holds_outlier, variance, welch_df
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.ratio import fieller_interval, ratio_test

# Student's sleep data (1908), as R ships them: datasets::sleep.
SLEEP_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SLEEP_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_welch_on_logarithms_is_r_t_test() -> None:
    """R's documentation of t.test, `t.test(extra ~ group, data = sleep)`: df = 17.776, p = 0.07939, -3.3654832 to 0.2054832.

    The data are exponentiated here, so that their logarithms are Student's."""
    one, two = [math.exp(value) for value in SLEEP_1], [math.exp(value) for value in SLEEP_2]
    found = ratio_test(one, two, margin=1e-12, alpha=0.05)
    assert found is not None and found.wide is not None
    assert math.log(found.wide.low) == pytest.approx(-3.3654832, abs=1e-6)
    assert math.log(found.wide.high) == pytest.approx(0.2054832, abs=1e-6)
    assert found.p_different == pytest.approx(0.07939, abs=1e-5)
    assert welch_df(variance(SLEEP_1) / 10, 10, variance(SLEEP_2) / 10, 10) == pytest.approx(17.776, abs=1e-3)


@pytest.mark.parametrize("level", [0.90, 0.95])
def test_log_intervals_are_scipys(level: float) -> None:
    """scipy.stats.ttest_ind(equal_var=False) on the logarithms, a program of others."""
    noise = np.random.default_rng(7)
    one, two = noise.lognormal(1, 0.3, 5), noise.lognormal(0.8, 0.1, 7)
    found = ratio_test(one.tolist(), two.tolist(), margin=0.1, alpha=0.05)
    peer = stats.ttest_ind(np.log(one), np.log(two), equal_var=False).confidence_interval(level)
    assert found is not None
    interval = found.interval if level == 0.90 else found.wide
    assert interval is not None and interval.level == pytest.approx(level)
    assert (interval.low, interval.high) == pytest.approx((math.exp(peer.low), math.exp(peer.high)), rel=1e-12)


def test_two_one_sided_tests_are_scipys() -> None:
    """Each of the two one-sided tests, by scipy, on values moved by the margin."""
    noise = np.random.default_rng(11)
    one, two = noise.lognormal(0.03, 0.05, 6), noise.lognormal(0, 0.02, 5)
    found = ratio_test(one.tolist(), two.tolist(), margin=0.1, alpha=0.05)
    above = stats.ttest_ind(np.log(one * 1.1), np.log(two), equal_var=False, alternative="greater").pvalue
    below = stats.ttest_ind(np.log(one / 1.1), np.log(two), equal_var=False, alternative="less").pvalue
    assert found is not None and found.p_equivalent == pytest.approx(max(above, below), rel=1e-9)


def test_fieller_is_dcstats() -> None:
    """DCPROGS/DCSTATS' README: 14 +- 3 over 7 +- 2, 10 degrees of freedom, 5 % each side: 1.051413 to 4.414296."""
    found = fieller_interval(14, 7, 3**2, 2**2, 10, 0.05)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((1.051413, 4.414296), abs=1e-6)
    assert found.level == pytest.approx(0.90)


@pytest.mark.parametrize(("tail", "low", "high"), [(0.05, 1.54, 2.64), (0.025, 1.46, 2.83), (0.005, 1.27, 3.36)])
def test_fieller_is_graphpads(tail: float, low: float, high: float) -> None:
    """GraphPad's QuickCalcs (as quoted there): means 14 and 7, SD 3 and 2, n = 6 each."""
    found = fieller_interval(14, 7, 3**2 / 6, 2**2 / 6, 10, tail)
    assert found is not None and (found.low, found.high) == pytest.approx((low, high), abs=0.006)


def test_fieller_has_no_bounds_where_the_reference_may_be_zero() -> None:
    """Fieller: unbounded where the denominator is less than t standard errors from 0; t(10, 0.05) = 1.812."""
    assert fieller_interval(14, 3.6, 9, 4, 10, 0.05) is None
    assert fieller_interval(14, 3.7, 9, 4, 10, 0.05) is not None


def test_fieller_of_a_constant_reference_is_students_interval() -> None:
    """Nothing but arithmetic: 0, 1, 2, 3, 4 over 2 is (2 +- 2.132 sqrt(2.5 / 5)) / 2; 2.131847 is t(0.95, 4) of any table."""
    found = ratio_test([0, 1, 2, 3, 4], [2, 2, 2, 2, 2], margin=0.1, alpha=0.05)
    assert found is not None and found.method == "fieller" and found.interval is not None
    half = 2.131847 * math.sqrt(0.5) / 2
    assert (found.interval.low, found.interval.high) == pytest.approx((1 - half, 1 + half), abs=1e-6)


def test_holm_is_arithmetic() -> None:
    """Holm (1979): sorted, times 4, 3, 2, 1, and never less than the one before."""
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_estimate_is_arithmetic() -> None:
    """1 to 5: mean 3, variance 10/4; half width 2.776445 sqrt(2.5 / 5), with t(0.975, 4) of any table."""
    found = estimate([1, 2, 3, 4, 5], 0.95)
    assert (found.n, found.mean) == (5, 3)
    assert found.stdev == pytest.approx(math.sqrt(2.5))
    assert found.interval is not None and found.interval.high - 3 == pytest.approx(2.776445 * math.sqrt(0.5), abs=1e-6)


def test_grubbs_is_nists() -> None:
    """NIST/SEMATECH e-Handbook 1.3.5.17.1 (Tietjen and Moore's data): 245.57 is an outlier, G = 2.4687; without it none."""
    data = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57]
    assert holds_outlier(data)
    assert not holds_outlier(data[:-1])


def printed(mean: float, half: float) -> Estimate:
    return Estimate(10, mean, None, Interval(mean - half, mean + half, 0.95), ())


@pytest.mark.parametrize(
    ("physical", "virtual", "within", "overlap"),
    [
        ((14420, 74.3), (6476, 707), False, False),
        ((14420, 74.3), (13590, 139), True, False),
        ((112, 0.012), (113, 0.12), True, False),
        ((13080, 101), (13631, 139), True, False),
        ((638, 2.4), (590, 35.7), True, False),
        ((50.0, 0.316), (44.5, 2.78), False, False),
        ((0.26, 0.03), (0.25, 0.074), True, True),
    ],
)
def test_rules_on_printed_means(
    physical: tuple[float, float], virtual: tuple[float, float], within: bool, overlap: bool
) -> None:
    """Crussell et al., "Virtually the Same", Tables I, II and VII: means with half widths of 95 % intervals, and its rules:
    means differ by no more than 10 %; intervals overlap. The answers are by hand."""
    assert within_rule(printed(*virtual), printed(*physical), 0.10) is within
    assert intervals_overlap(printed(*virtual), printed(*physical)) is overlap


def test_spreads_near_rounding_error_have_degrees_of_freedom():
    """Equal standard errors and equal n make 2 (n - 1), whatever their size."""
    assert welch_df(1e-180, 3, 1e-180, 3) == 4.0


def test_a_difference_in_the_last_bit_is_no_spread():
    """Their logarithms are equal, so a test on those would divide by 0."""
    found = ratio_test([89.00000000000001, 89.0, 89.0], [89.0, 89.0, 89.0], 0.1, 0.05)
    assert found is not None and found.method == "exact" and found.ratio == pytest.approx(1.0)
