"""The total over a finite population, against a printed example, exact arithmetic over all samples, and simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import pytest
from benchmarks.simulated.sampled import POPULATIONS, coverage

from twinbed.statistics.finite import total

SIGNATURES = {
    42: 23,
    41: 4,
    36: 1,
    32: 1,
    29: 1,
    27: 2,
    23: 1,
    19: 1,
    16: 2,
    15: 2,
    14: 1,
    11: 1,
    10: 1,
    9: 1,
    7: 1,
    6: 3,
    5: 2,
    4: 1,
    3: 1,
}
"""Cochran, Sampling Techniques, 3rd edition (1977), section 2.8: signatures on a petition's sheet -> how many of the 50 sheets
that were drawn of 676 had as many."""


def test_the_petition_of_cochrans_book() -> None:
    """Printed: total 19,888; s² 229.0; 80 % limits 18,107 and 21,669 by the normal deviate 1.28. Student's with 49 degrees of
    freedom is 1.2991 (R: qt(0.9, 49)) instead."""
    sheets = [signatures for signatures, count in SIGNATURES.items() for _ in range(count)]
    assert len(sheets) == 50
    found = total(sheets, 676, level=0.8)
    assert round(found.estimate) == 19_888
    assert found.low is not None and found.high is not None
    half = (21_669 - 18_107) / 2 * 1.2991 / 1.28
    assert found.high - found.estimate == pytest.approx(half, rel=0.002)
    assert found.estimate - found.low == pytest.approx(half, rel=0.002)


def test_over_all_samples_the_estimate_and_its_variance_are_exactly_unbiased() -> None:
    """Of the 56 samples of 3 of 8, by exact arithmetic: their mean is the total, and the mean square of what the interval's
    half width stands for is the variance of the estimates."""
    population = [3, 1, 4, 1, 5, 9, 2, 60]
    samples = list(combinations(population, 3))
    quantile = 4.302652729911275  # R: qt(0.975, 2)
    found = [total(sample, len(population)) for sample in samples]
    estimates = [Fraction(len(population) * sum(sample), 3) for sample in samples]
    assert sum(estimates) == sum(population) * len(samples)
    assert [each.estimate for each in found] == pytest.approx([float(each) for each in estimates])
    variance = sum((each - sum(population)) ** 2 for each in estimates) / len(samples)
    halves = [(each.high - each.estimate) / quantile for each in found if each.high is not None]
    assert math.fsum(half**2 for half in halves) / len(samples) == pytest.approx(float(variance), rel=1e-9)


def test_a_total_is_never_below_what_was_seen() -> None:
    found = total([0.0, 100.0], 3)
    assert found.low == 100.0 and found.estimate == 150.0


def test_all_of_them_are_no_estimate_and_one_has_no_interval() -> None:
    assert (total([1.0, 2.0], 2).low, total([1.0, 2.0], 2).high) == (3.0, 3.0)
    assert total([20.0, 20.0, 20.0], 9).high is None, "how far the others differ is not known"
    assert total([5.0], 4).low is None and total([5.0], 4).high is None and total([5.0], 4).estimate == 20.0


@pytest.mark.parametrize(("values", "of"), [([], 3), ([1.0, 2.0], 1)])
def test_what_cannot_be_a_sample_is_refused(values: list[float], of: int) -> None:
    with pytest.raises(ValueError, match="were drawn of"):
        total(values, of)


@pytest.mark.parametrize("name", [each.name for each in POPULATIONS if each.holds])
@pytest.mark.parametrize(("drawn", "of"), [(2, 16), (8, 80)])
def test_intervals_hold_the_total_as_often_as_they_say(name: str, drawn: int, of: int) -> None:
    """20,000 runs: the standard error of a share of 95 % is 0.15 %."""
    population = next(each for each in POPULATIONS if each.name == name)
    assert 0.94 <= coverage(population, drawn, of, 20_000, seed=7) <= 0.96
