"""The interval of one value more: its factors as printed, its coverage, and what is too few."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import numpy as np
import pytest

from twinbed.statistics.moments import apart, half_width

PRINTED = {3: 4.968, 4: 3.558, 5: 3.041, 6: 2.777, 8: 2.508, 10: 2.373, 20: 2.145}
"""Values -> half the width at 95 %, in standard deviations: Student's t as printed (4.303, 3.182, 2.776, 2.571, 2.365, 2.262,
2.093) times sqrt(1 + 1/k), which Hahn and Meeker print as the factor for one future observation."""


@pytest.mark.parametrize("count", PRINTED)
def test_half_width_is_the_printed_factor(count: int) -> None:
    values = list(np.random.default_rng(1).normal(5, 2, count))
    assert half_width(values, 0.05) / stdev(values) == pytest.approx(PRINTED[count], abs=2e-3)


@pytest.mark.parametrize(("count", "alpha"), [(3, 0.05), (8, 0.01)])
def test_the_next_value_is_inside_as_often_as_said(count: int, alpha: float) -> None:
    draws = 20_000
    values = np.random.default_rng(2).normal(0, 1, (draws, count + 1))
    outside = sum(apart(one[-1], list(one[:-1]), alpha) is not None for one in values)
    sigma = math.sqrt(alpha * (1 - alpha) / draws)
    assert abs(outside / draws - alpha) < 4 * sigma


def test_too_few_peers_tell_nothing() -> None:
    assert apart(100.0, [1.0, 1.1], 0.05) is None


def test_what_is_sure_but_small_does_not_count() -> None:
    peers = [1.0, 1.001, 0.999, 1.0]
    above = apart(1.05, peers, 0.01)
    assert above == pytest.approx(1.05 - fmean(peers))
    assert apart(1.05, peers, 0.01, least=0.1) is None
