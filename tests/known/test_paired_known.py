"""Comparisons within pairs, against what others computed.

Student's sleep data (1908, Biometrika 6:1) and their paired t test as the manual of R prints it (?sleep, t.test(..., paired =
TRUE)): t = -4.0621, 9 degrees of freedom, p = 0.002833, interval -2.4598858 to -0.7001142, mean -1.58.  Where a value is 0,
the interval's ends are where scipy's test of one sample, x - theta y, has a p-value of alpha.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from twinbed.statistics.bootstrap import ratio_interval
from twinbed.statistics.difference import difference_test
from twinbed.statistics.power import replicates_needed
from twinbed.statistics.ratio import ratio_test

SLEEP = ([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def test_the_difference_is_that_of_the_manual_of_r() -> None:
    test = difference_test(*SLEEP, 1.0, 0.05, paired=True)
    assert test.difference == pytest.approx(-1.58)
    assert tuple(test.wide)[:2] == pytest.approx((-2.4598858, -0.7001142), abs=5e-8)
    assert difference_test(*SLEEP, 1e-12, 0.05, paired=True).p_different == pytest.approx(0.002833, abs=5e-7)


def test_a_ratio_of_positive_values_is_the_difference_of_their_logarithms() -> None:
    one, two = ([math.exp(value) for value in values] for values in SLEEP)
    test = ratio_test(one, two, 0.1, 0.05, paired=True)
    assert test is not None and test.wide is not None and test.method == "log"
    assert [math.log(bound) for bound in (test.wide.low, test.wide.high)] == pytest.approx([-2.4598858, -0.7001142], abs=5e-8)
    nearest = stats.ttest_rel(SLEEP[0], np.asarray(SLEEP[1]) - math.log(1.1)).pvalue
    assert test.p_different == pytest.approx(nearest)


def test_with_zeros_the_interval_ends_where_the_test_of_one_sample_does() -> None:
    one, two = [0.0, 3.0, 8.0, 12.0, 9.0, 14.0], [4.0, 6.0, 9.0, 13.0, 10.0, 16.0]
    test = ratio_test(one, two, 0.2, 0.05, paired=True)
    assert test is not None and test.method == "fieller" and test.interval is not None and test.wide is not None
    for bounds, p_value in ((test.interval, 0.10), (test.wide, 0.05)):
        for theta in (bounds.low, bounds.high):
            own = stats.ttest_1samp(np.asarray(one) - theta * np.asarray(two), 0.0)
            assert own.pvalue == pytest.approx(p_value, rel=1e-9)
    above = stats.ttest_1samp(np.asarray(one) - np.asarray(two) / 1.2, 0.0, alternative="greater").pvalue
    below = stats.ttest_1samp(np.asarray(one) - np.asarray(two) * 1.2, 0.0, alternative="less").pvalue
    assert test.p_equivalent == pytest.approx(max(above, below))


def test_what_shifts_a_whole_pair_cancels() -> None:
    base, shift = [1.0, 1.1, 0.9, 1.05, 0.95], [1.0, 3.0, 0.2, 5.0, 0.7]
    two = [1.0, 0.98, 1.01, 1.0, 0.99]
    both = [[value * by for value, by in zip(each, shift, strict=True)] for each in (base, two)]
    plain, shifted = ratio_test(base, two, 0.1, 0.05, paired=True), ratio_test(*both, 0.1, 0.05, paired=True)
    assert plain is not None and shifted is not None and plain.interval is not None and shifted.interval is not None
    assert tuple(shifted.interval) == pytest.approx(tuple(plain.interval))


def test_pairs_that_differ_by_one_ratio_have_it_exactly() -> None:
    values = [1.0, 2.0, 3.0, 5.0]
    test = ratio_test([1.25 * value for value in values], values, 0.1, 0.05, paired=True)
    assert test is not None and test.method == "exact" and test.ratio == pytest.approx(1.25) and test.p_different == 0


def test_unequal_numbers_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        ratio_test([1.0, 2.0], [1.0, 2.0, 3.0], 0.1, 0.05, paired=True)


def test_the_bootstrap_resamples_pairs() -> None:
    """With the same shift on both sides of each pair its interval is as narrow as that of the differences."""
    noise = np.random.default_rng(1)
    shift, own = np.exp(noise.normal(0, 1, 20)), np.exp(noise.normal(0, 0.01, (2, 20)))
    one, two = (shift * own).tolist()
    paired, apart = (ratio_interval(one, two, 0.9, paired=each) for each in (True, False))
    assert paired is not None and apart is not None
    assert paired.high - paired.low < 0.05 * (apart.high - apart.low)
    turned = ratio_interval(two[::-1], one[::-1], 0.9, paired=True)
    assert turned is not None and turned.low == pytest.approx(1 / paired.high)


def test_fewer_pairs_are_needed_where_pairs_are_alike() -> None:
    noise = np.random.default_rng(2)
    shift = noise.normal(0, 0.1, 6)
    one, two = (np.exp(shift + noise.normal(0, 0.06, 6)).tolist() for _ in range(2))
    paired, apart = (replicates_needed(one, two, 0.1, 0.05, paired=each) for each in (True, False))
    assert paired is not None and (apart is None or paired < apart)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
@pytest.mark.parametrize("n", [4, 5, 10])
def test_size_is_kept_whatever_blocks_share(correlation: float, n: int) -> None:
    """1,000 studies at the margin's edge: at most 5 % called equivalent or different; 7.1 % is 3 standard errors above."""
    noise = np.random.default_rng([n, int(10 * correlation)])
    shift = noise.normal(0, math.sqrt(correlation), (1000, n))
    one, two = (0.1 * (shift + noise.normal(0, math.sqrt(1 - correlation), (1000, n))) for _ in range(2))
    x, y = np.exp(math.log(1.25) + one).tolist(), np.exp(two).tolist()
    tests = [ratio_test(*each, 0.25, 0.05, paired=True) for each in zip(x, y, strict=True)]
    for name in ("p_equivalent", "p_different"):
        assert np.mean([getattr(test, name) <= 0.05 for test in tests]) <= 0.071
