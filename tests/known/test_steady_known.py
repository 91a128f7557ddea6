"""Steady states: exact arithmetic, scipy, and how often what is steady is called unsteady."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, optimize, stats

from twinbed.statistics.steady import (
    alone,
    best_seconds,
    change,
    in_budget,
    mean_error,
    mser5,
    over_runs,
    settling,
    split,
    warm_ups,
)


def brute(values: list[float]) -> int:
    """MSER-5 by its definition: var(rest) / len(rest) over means of five."""
    batches = [float(np.mean(values[at : at + 5])) for at in range(0, len(values) - 4, 5)]
    errors = [np.var(batches[cut:]) / len(batches[cut:]) for cut in range(len(batches) // 2 + 1)]
    return 5 * int(np.argmin(errors))


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_the_one_of_least_error(seed: int) -> None:
    noise = np.random.default_rng(seed)
    values = (10 + 8 * np.exp(-np.arange(100) / (1 + 2 * seed)) + noise.normal(0, 0.3, 100)).tolist()
    assert mser5(values) == brute(values)


def test_a_planted_warm_up_is_cut_off() -> None:
    noise = np.random.default_rng(1)
    runs = [np.where(np.arange(100) < 20, 0.5, 1.0) * noise.lognormal(0, 0.05, 100) for _ in range(5)]
    cut = mser5(np.mean(runs, axis=0).tolist())
    assert 20 <= cut <= 50 and np.mean([run[cut:] for run in runs]) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("slope", [0.0, 0.01, -0.02])
def test_the_change_is_by_theil_and_sens_slope(slope: float) -> None:
    values = 3 + slope * np.arange(50) + np.random.default_rng(2).normal(0, 0.05, 50)
    means = values.reshape(10, 5).mean(1)
    assert change(values.tolist()) == pytest.approx(stats.theilslopes(means)[0] * 10 / np.median(means))
    assert change((3 + slope * np.arange(50)).tolist()) == pytest.approx(slope * 50 / (3 + slope * 24.5))
    assert change([0.0] * 40) is None


def test_means_over_runs_are_scipys() -> None:
    values = [0.1, 0.14, 0.05, 0.2]
    found, expected = over_runs(values, 0.95), stats.ttest_1samp(values, 0.0)
    assert found.p_value == pytest.approx(expected.pvalue) and found.interval is not None
    assert tuple(found.interval)[:2] == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert over_runs([0.2], 0.95).p_value is None and over_runs([0.0, 0.0], 0.95).p_value == 1.0


def test_one_far_from_the_others_is_grubbs() -> None:
    """The mass spectrometer's readings of the NIST/SEMATECH handbook, 1.3.5.17.1: G = 2.46876, significant at 5 %; its critical
    values are those of t at 1 - 0.05/(2 n), so that a value there has a p-value of 0.05."""
    readings = [199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57]
    found = alone(readings)
    assert found is not None and (found.at, found.value) == (7, 245.57) and found.p_value < 1e-6
    assert found.others == pytest.approx(np.mean(readings[:7]))
    for n in (4, 8, 20):
        t = float(stats.t.ppf(1 - 0.05 / (2 * n), n - 2))
        critical = (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t))
        # n - 1 values of which the last is G standard deviations away: two sides at +-1 and one at x, by solving.
        rest = stats.norm.ppf((np.arange(n - 1) + 0.5) / (n - 1))

        def deviation(x: float, rest: np.ndarray = rest, critical: float = critical) -> float:
            values = np.append(rest, x)
            return float(abs(x - values.mean()) / values.std(ddof=1) - critical)

        at = optimize.brentq(deviation, 0.5, 1000.0)
        found = alone([*rest.tolist(), at])
        assert found is not None and found.at == n - 1 and found.p_value == pytest.approx(0.05, rel=1e-6)
    assert alone([0.1, 0.1, 5.0]) is None and alone([1.0] * 6) is None


@pytest.mark.parametrize("runs", [4, 10])
def test_one_run_is_said_to_drift_as_rarely_as_stated(runs: int) -> None:
    """Of 600 steady cells at most 5 %, and three standard errors; without a margin, which makes it rarer still."""
    noise = np.random.default_rng(runs)
    named = sum(settling(noise.normal(0, 1, runs).tolist(), 1e-9, 0.95).astray is not None for _ in range(600))
    assert named / 600 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.5, 0.7])
def test_errors_of_means_hold_the_dependence_of_neighbours(correlation: float) -> None:
    """An autoregressive series of 1,000 values: the variance of its mean is (1 + r)/(1 - r) / 1000."""
    noise = np.random.default_rng(3)
    squares = []
    for _ in range(400):
        steps, values = noise.normal(0, math.sqrt(1 - correlation**2), 1000), np.empty(1000)
        level = noise.normal()
        for at, step in enumerate(steps):
            values[at] = level = correlation * level + step
        squares.append(mean_error(values.tolist()) ** 2)
    assert np.mean(squares) == pytest.approx((1 + correlation) / (1 - correlation) / 1000, rel=0.08)


@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_that_of_an_autoregression(seed: int) -> None:
    """Yule and Walker's equations of each order by scipy's Levinson recursion, and Akaike's criterion among them."""
    noise, level, values = np.random.default_rng(seed), 0.0, []
    for _ in range(100):
        level = 0.6 * level + noise.normal()
        values.append(level)
    about = np.array(values) - np.mean(values)
    products = np.correlate(about, about, "full")[99:120] / 100
    spectra: dict[float, float] = {}
    for order in range(21):
        weights = linalg.solve_toeplitz(products[:order], products[1 : order + 1]) if order else np.empty(0)
        noise_left = products[0] - weights @ products[1 : order + 1]
        spectra[100 * math.log(noise_left) + 2 * order] = noise_left * 100 / (99 - order) / (1 - weights.sum()) ** 2
    assert mean_error(values) == pytest.approx(math.sqrt(spectra[min(spectra)] / 100))
    assert mean_error([3.0] * 50) == 0


def test_the_split_is_that_of_the_standard() -> None:
    """s_d^2 of the means less s_r^2/n: with s_L = 0.022361 and s_r = 0.015 of 3 values each, means have s_d^2 = 0.0005 +
    0.000075."""
    offsets = math.sqrt(0.000575) * np.array([-1.0, 1.0]) / math.sqrt(2)
    found = split((0.69 + offsets).tolist(), [0.015 / math.sqrt(3)] * 2)
    assert found.within == pytest.approx(math.sqrt(0.000075)) and found.between == pytest.approx(math.sqrt(0.0005))
    assert found.deviation == pytest.approx(math.sqrt(0.000575))
    assert split([1.0, 1.001], [0.1, 0.1]).between == 0


def test_the_best_length_has_the_least_error() -> None:
    """By trying: 1 hour in runs of T s and 20 s besides, error^2 = (between^2 + within^2 30/T) / (3600 / (T + 20))."""
    parts = split([0.9, 1.0, 1.1], [0.08, 0.08, 0.08])
    lengths = np.linspace(1, 200, 200_000)
    errors = (parts.between**2 + parts.within**2 * 30 / lengths) * (lengths + 20) / 3600
    assert best_seconds(parts, 30.0, 20.0) == pytest.approx(lengths[errors.argmin()], abs=0.01)


def test_a_budget_is_spent_by_the_arithmetic() -> None:
    """An hour, 20 s besides: 36 runs of 80 s, whose inside of 0.08 at 30 s is 0.08^2 x 30/80."""
    parts = split([0.9, 1.0, 1.1], [0.08, 0.08, 0.08])
    runs, error = in_budget(parts, 30.0, 20.0, 80.0, 3600.0)
    assert runs == 36 and error == pytest.approx(math.sqrt((parts.between**2 + 0.08**2 * 30 / 80) / 36))
    assert in_budget(parts, 30.0, 20.0, 80.0, 1.0)[0] == 1


@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("runs", [3, 10])
def test_steady_runs_are_called_drifting_as_rarely_as_stated(correlation: float, runs: int) -> None:
    """400 studies of runs of 100 values, whose neighbours may be much alike: at most 5 %; 8.3 is three standard errors more."""
    noise = np.random.default_rng(runs)
    wrong = 0
    for _ in range(400):
        changes = []
        for _ in range(runs):
            steps, level, values = noise.normal(0, math.sqrt(1 - correlation**2), 50), noise.normal(), []
            for step in steps:
                level = correlation * level + step
                values.append(1 + 0.1 * level)
            changes.append(change(values) or 0.0)
        p_value = over_runs(changes, 0.95).p_value
        wrong += p_value is not None and p_value <= 0.05
    assert wrong / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("runs", [3, 10])
def test_steady_runs_are_said_to_warm_up_as_rarely_as_stated(runs: int) -> None:
    """400 studies of independent values: at most 5 %; 8.3 is three standard errors more."""
    noise = np.random.default_rng(runs)
    wrong = 0
    for _ in range(400):
        found = over_runs(warm_ups([noise.normal(1, 0.1, 100).tolist() for _ in range(runs)]), 0.95).p_value
        wrong += found is not None and found <= 0.05
    assert wrong / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_drifts_whose_medians_tie_are_no_proof_that_runs_settle() -> None:
    """Slopes of counts of a few answers are 0 in every run, whatever comes between: nothing is shown. Of slopes that differ by
    little it is: Student's t of (-0.001, 0, 0.001) is 0 +- 4.303 x 0.001 / sqrt(3) = 0.00248."""
    tied = settling([0.0, 0.0, 0.0], 0.1, 0.95)
    assert (tied.settles, tied.over.interval, tied.over.p_value) == (None, None, None)
    known = settling([-0.001, 0.0, 0.001], 0.1, 0.95)
    assert known.settles and known.over.interval is not None
    assert known.over.interval.high == pytest.approx(0.00248, abs=1e-5)
