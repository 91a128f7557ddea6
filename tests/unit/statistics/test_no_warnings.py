"""No warning of scipy's reaches a user."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import pytest

from twinbed.statistics.bootstrap import ratio_interval

NOISE = [math.exp(math.sin(7 * each)) for each in range(12)]
FEW = [0.0] * 10 + [1.0, 2.0]
RARE, ZEROS, HALF = [0.0] * 11 + [1.0], [0.0] * 12, [0.0] * 6 + [1.0] * 6


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(
    ("values", "reference"),
    [
        (RARE, NOISE),
        (NOISE, RARE),
        (RARE, RARE),
        (ZEROS, NOISE),
        (NOISE, ZEROS),
        (HALF, HALF),
        (FEW, FEW),
        ([3.0] * 12, NOISE),
        (NOISE, NOISE),
    ],
)
def test_bootstrap_of_samples_that_hardly_vary(values: Sequence[float], reference: Sequence[float], paired: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ratio_interval(values, reference, 0.9, paired=paired)
    assert found is None or math.isfinite(found.low + found.high)
    assert found is not None or 0.0 in (*values, *reference) or (paired and values is reference)
