"""docs/coverage.md in small: vectorised methods are the program's, coverage and sizes are as stated, and doubts are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.simulated.methods import (
    METHODS,
    TRUE_RATIO,
    Method,
    brown_forsythe,
    mann_whitney,
    ratio_p_values,
)
from benchmarks.simulated.populations import POPULATIONS, Population

from twinbed.statistics import ordinal, ratio, spread

VECTORISED = [method for method in METHODS if method.at_once is not None]


def samples(of: Population, studies: int, n: int, ratio: float = TRUE_RATIO, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng([seed, n])
    return ratio * of.draw(noise, studies, n), of.draw(noise, studies, n)


@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: population.name)
@pytest.mark.parametrize("method", VECTORISED, ids=lambda method: method.name)
def test_intervals_of_arrays_are_the_programs(method: Method, population: Population, n: int) -> None:
    x, y = samples(population, 40, n)
    assert method.at_once is not None
    low, high = method.at_once(x, y)
    own = [method.program(one, two) for one, two in zip(x.tolist(), y.tolist(), strict=True)]
    assert [math.isnan(each) for each in low] == [each is None for each in own]
    for at, each in enumerate(own):
        if each is not None:
            assert (low[at], high[at]) == pytest.approx((each.low, each.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [3, 10])
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: population.name)
def test_p_values_of_arrays_are_the_programs(population: Population, n: int) -> None:
    x, y = samples(population, 60, n)
    inside, outside = ratio_p_values(x, y, 0.1)
    equal, ranked = brown_forsythe(x, y), mann_whitney(x, y)
    for at, (one, two) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        test = ratio.ratio_test(one, two, 0.1, 0.05)
        assert test is not None
        assert (inside[at], outside[at]) == pytest.approx((test.p_equivalent, test.p_different), abs=1e-9)
        assert ranked[at] == pytest.approx(ordinal.mann_whitney(one, two))
        own = spread.brown_forsythe(one, two)
        assert own is None or equal[at] == pytest.approx(own, abs=1e-9)
