"""What a sample keeps, held to exact arithmetic; and that it is what numpy takes for a list of numbers."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from statistics import median

import numpy as np
import pytest

from twinbed.statistics.moments import logarithms, variance, varies
from twinbed.statistics.sample import Sample


@pytest.fixture(params=[2, 5, 40])
def values(request: pytest.FixtureRequest) -> list[float]:
    noise = random.Random(request.param)
    return [1e6 + noise.gauss(0, 1) for _ in range(request.param)]


def test_moments_by_fractions(values: list[float]) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    sample = Sample(values)
    assert sample.average == pytest.approx(float(mean), rel=3e-16)
    assert sample.variance == pytest.approx(float(sum((each - mean) ** 2 for each in exact) / (len(exact) - 1)), rel=1e-9)
    assert (sample.least, sample.most, sample.median) == (min(values), max(values), median(values))
    assert sample.ordered == sorted(values)
    assert sorted(sample.about_median) == sorted(abs(value - median(values)) for value in values)
    assert list(sample.logarithms) == [math.log(value) for value in values]
    assert list(sample) == values


def test_numpy_takes_it_for_its_values(values: list[float]) -> None:
    """numpy calls attributes of what it is given, if these are called as its own functions."""
    sample = Sample(values)
    assert sample.variance
    for function in (np.mean, np.median, np.std, np.var, np.sum, np.max, np.sort, np.log):
        assert np.array_equal(function(sample), function(values))


def test_a_sample_is_made_once() -> None:
    sample = Sample([1.0, 2.0, 4.0])
    assert Sample.of(sample) is sample
    assert logarithms(sample) is sample.logarithms
    assert variance(sample) == variance([1.0, 2.0, 4.0]) == pytest.approx(7 / 3)
    assert not varies(Sample([0.1 + 0.2, 0.3]))
    assert set(logarithms([0.1 + 0.2, 0.3])) == {math.log(0.1 + 0.2)}
