"""Verdicts where values say little: rounded values, rare events, none at all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from twinbed.statistics.counts import Tally, are_rare, count_test, most_unseen, unseen_share
from twinbed.statistics.order import dependence, neighbours
from twinbed.statistics.ratio import RatioTest, ratio_test
from twinbed.statistics.resolution import bias, step

STUDIES = 1000
TOLERANCE = 3 * math.sqrt(0.05 * 0.95 / STUDIES)
"""Three standard errors of a share of 5 %."""


def test_the_ratio_of_two_rates_is_rs() -> None:
    """R's documentation of poisson.test, `poisson.test(c(11, 6+8+7), c(800, 1083+1050+878))`: 0.8584264 to 4.2772659."""
    test = count_test(Tally([11.0], 800), Tally([6.0, 8.0, 7.0], 1083 + 1050 + 878), 0.1, 0.05)
    assert (test.wide.low, test.wide.high) == pytest.approx((0.8584264, 4.2772659), rel=1e-6)


@pytest.mark.parametrize(("x", "y"), [(3, 12), (0, 7), (40, 41), (9, 0)])
def test_tests_of_counts_are_scipys_binomial_ones(x: int, y: int) -> None:
    """Given the total, the first of two Poisson counts is binomial: scipy.stats.binomtest, in both one-sided ways."""
    test = count_test(Tally([float(x)], 2), Tally([float(y)], 3), 0.25, 0.05)
    low, high = (ratio * 2 / (ratio * 2 + 3) for ratio in (1 / 1.25, 1.25))

    def p(share: float, alternative: str) -> float:
        return float(stats.binomtest(x, x + y, share, alternative).pvalue)

    assert test.p_equivalent == pytest.approx(max(p(low, "greater"), p(high, "less")), rel=1e-9)
    assert test.p_different == pytest.approx(min(1.0, 2 * min(p(high, "greater"), p(low, "less"))), rel=1e-9)


def test_the_rule_of_three() -> None:
    """Hanley and Lippman-Hand (1983): 0 of 100 is at most 3 %; exactly 2.95 % as a share, and 3/n as a rate of events."""
    assert most_unseen(100) == pytest.approx(0.03, abs=1e-4)
    assert unseen_share(100) == pytest.approx(0.0295, abs=1e-4)
    assert unseen_share(5) == pytest.approx(1 - 0.05**0.2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], 1.0),
        ([100, 100], 1.0),
        ([100, 300, 200, 700], 100.0),
        ([0.25, 0.5], 0.01),
        ([0.001, 0.004, 0.0], 0.001),
        ([9_410_000, 9_420_000, 9_390_000, 9_400_000], 10_000.0),
        ([1 / 3, 0.5], 0.0),
        ([0.012, 0.016, 0.012, 0.02, 0.016, 0.012], 0.004),
        ([1.25, 1.5, 1.25, 2.0], 0.25),
        ([3.0, 10 / 3, 11 / 3, 3.0], 1 / 3),
        ([3.0, 3.33, 3.67, 3.33, 4.33, 3.0], 1 / 3),
        ([31.0, 47.0, 78.0, 63.0, 94.0, 125.0], 15.625),
        ([3 * 2.0**20, 4 * 2.0**20, 6 * 2.0**20], 2.0**20),
        ([12.0, 14.0, 12.0, 16.0], 1.0),  # of finer values one in four is so by chance
        ([0.1 + 0.2, 0.3, 0.3, 0.30000000000000004], 0.1),
        ([0.0, 0.0], 0.0),
        ([1e100, 1e-100], 0.0),
    ],
)
def test_the_step_of_values(values: list[float], expected: float) -> None:
    assert step(values) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.5])
def test_rounding_moves_means_by_no_more_than_that(sigma: float) -> None:
    """The exact mean of rounded normal values, by their probabilities, for means between two steps; the bound at that sigma."""
    worst = 0.0
    for mean in np.linspace(0, 1, 101):
        whole = np.arange(-8, 10)
        shares = stats.norm.cdf(whole + 0.5, mean, sigma) - stats.norm.cdf(whole - 0.5, mean, sigma)
        worst = max(worst, abs(float((whole * shares).sum()) - mean))
    values = np.random.default_rng(3).normal(0.3, math.sqrt(sigma**2 + 1 / 12), 4000)
    assert worst <= bias(list(values / values.std(ddof=1) * math.sqrt(sigma**2 + 1 / 12)), 1.0) <= 0.5


def verdict_of(one: np.ndarray, two: np.ndarray, *, counts: bool) -> RatioTest:
    found = step([*one, *two])
    tallies = (Tally(one.tolist(), len(one)), Tally(two.tolist(), len(two))) if counts else None
    test = ratio_test(one.tolist(), two.tolist(), 0.1, 0.05, steps=(0.0, 0.0) if counts else (found, found), counts=tallies)
    assert test is not None
    return test


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
@pytest.mark.parametrize(
    ("mean", "reference"), [(0.45, 0.05), (0.52, 0.48), (1.45, 1.2), (1.52, 1.48), (20.4, 20.45), (7.7, 7.0)]
)
def test_rounded_values_are_no_proof(mean: float, reference: float, n: int) -> None:
    """Values with 5 % of noise that are printed in whole ones: neither a false equivalence nor a false difference."""
    noise = np.random.default_rng(n)
    equivalent = different = 0
    inside = max(mean / reference, reference / mean) <= 1.1
    for _ in range(STUDIES // 2):
        one, two = (np.rint(value * noise.lognormal(0, 0.05, n)) for value in (mean, reference))
        test = verdict_of(one, two, counts=False)
        equivalent += test.p_equivalent <= 0.05
        different += test.p_different <= 0.05
    assert (different if inside else equivalent) <= (0.05 + 2 * TOLERANCE) * STUDIES / 2


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20])
@pytest.mark.parametrize(("rate", "reference"), [(0.10, 0.02), (1.1, 1.0), (3.3, 3.0), (0.5, 0.5), (12.0, 12.0)])
def test_rare_events_are_no_proof(rate: float, reference: float, n: int) -> None:
    """Poisson counts a run: at the edge of the margin or beyond it no more than 5 % equivalent, within it no more different."""
    noise = np.random.default_rng(n)
    equivalent = different = 0
    for _ in range(STUDIES):
        test = verdict_of(noise.poisson(rate, n).astype(float), noise.poisson(reference, n).astype(float), counts=True)
        equivalent += test.p_equivalent <= 0.05
        different += test.p_different <= 0.05
    if rate / reference >= 1.1 - 1e-9:
        assert equivalent <= (0.05 + TOLERANCE) * STUDIES
    if rate / reference <= 1.1 + 1e-9:
        assert different <= (0.05 + TOLERANCE) * STUDIES


def test_what_the_set_up_fixes_is_no_rare_event() -> None:
    assert not are_rare([2.0] * 5, [2.0] * 5), "chance would make them differ: (2*5)! / (2!^5 5^10) = 0.0116"
    assert are_rare([1.0] * 3, [1.0] * 3), "3! / 3^3 = 0.22"
    assert are_rare([0.0] * 5, [0.0, 0.0, 1.0, 0.0, 0.0])
    assert not are_rare([0.5, 1.0], [1.0, 2.0]), "no counts"
    assert not are_rare([500.0, 501.0], [499.0, 502.0])


def test_no_event_on_either_side_is_no_verdict() -> None:
    test = ratio_test([0.0] * 20, [0.0] * 20, 0.1, 0.05, counts=(Tally([0.0] * 20, 20), Tally([0.0] * 20, 20)))
    assert test == RatioTest(None, None, None, 1.0, 1.0, "unseen")


@pytest.mark.parametrize("n", [60, 1200])
def test_cells_measured_one_after_the_other_do_not_make_runs_depend(n: int) -> None:
    """Skewed residuals of cells that differ in spread, each cell in any order: Bartels's test calls most of them dependent,
    since he takes all orders of all values for equally likely."""
    noise = np.random.default_rng(5)
    size, tries = 6, 200 if n < 100 else 40
    groups = [number // size for number in range(n)]
    ours = bartels = 0
    for _ in range(tries):
        cells = noise.lognormal(0, 1.2, (n // size, size)) * noise.choice([0.01, 1.0], (n // size, 1))
        residuals = (cells - cells.mean(1, keepdims=True)).ravel().tolist()
        own, his = dependence(residuals, groups), neighbours(residuals)
        assert own is not None and his is not None
        ours += own.p_value <= 0.05
        bartels += his.p_value <= 0.05
    assert ours <= (0.05 + 3 * math.sqrt(0.05 * 0.95 / tries)) * tries
    assert bartels >= ours


@pytest.mark.parametrize("correlation", [0.7, -0.7])
def test_runs_that_do_depend_are_found(correlation: float) -> None:
    """A first-order autoregressive series, in four cells that alternate."""
    noise = np.random.default_rng(6)
    found = 0
    for _ in range(50):
        values = [0.0]
        for step_of in noise.normal(size=59):
            values.append(correlation * values[-1] + step_of)
        test = dependence(values, [number % 4 for number in range(60)])
        assert test is not None and (test.correlation > 0) == (correlation > 0)
        found += test.p_value <= 0.05
    assert found >= 45
