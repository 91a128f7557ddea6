"""Quantiles by Harrell and Davis against scipy's own, and how often a tail is called equivalent that is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from twinbed.statistics.quantile import harrell_davis
from twinbed.statistics.ratio import ratio_test

SHARES = (0.1, 0.5, 0.9, 0.99, 0.999)


@pytest.mark.parametrize("n", [2, 7, 50, 1000, 20_000])
def test_quantiles_are_scipys(n: int) -> None:
    """Weights that are not computed are too small to matter, however many values there are."""
    values = np.sort(np.random.default_rng(n).lognormal(0, 1.5, n))
    expected = stats.mstats.hdquantiles(values, list(SHARES))
    assert harrell_davis(values, SHARES) == pytest.approx(expected.tolist(), rel=1e-9)


def test_the_median_of_symmetric_values_is_their_middle() -> None:
    assert harrell_davis(np.arange(-50.0, 51.0), [0.5])[0] == pytest.approx(0.0, abs=1e-12)


def drawn(noise: np.random.Generator, runs: int, requests: int, slow: float, between: float) -> list[float]:
    """The P99 of runs whose requests take 1 ms and in 2 % ``slow`` times as long; a run shares ``between`` of its logarithm."""
    found = []
    for _ in range(runs):
        own = noise.normal(0, between)
        times = np.exp(own + noise.normal(0, 0.2, requests)) * np.where(noise.random(requests) < 0.02, slow, 1.0)
        found += harrell_davis(np.sort(times), [0.99])
    return found


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_a_tail_at_the_margin_is_equivalent_in_at_most_five_percent(runs: int) -> None:
    """400 studies of 600 requests a run, whose state shifts all of its requests by 10 %; three standard errors above 5 % is
    8.3. The same requests taken for independent are called so far more often."""
    noise = np.random.default_rng(runs)
    wrong = 0
    for _ in range(400):
        x, y = drawn(noise, runs, 600, 10.0, 0.1), drawn(noise, runs, 600, 10.0, 0.1)
        test = ratio_test([1.3 * value for value in x], y, 0.3, 0.05)
        assert test is not None
        wrong += test.p_equivalent <= 0.05
    assert wrong / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)
