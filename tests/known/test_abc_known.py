"""The interval of large skewed samples against R's ``boot::abc.ci`` (tests/golden/statistics/abc.R is the session), and against
scipy's resamples, which it stands in for."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap as resampled

from twinbed.statistics import bootstrap

Floats = NDArray[np.float64]
GOLDEN = Path(__file__).parents[1] / "golden" / "statistics" / "abc.csv"
ROWS = list(csv.DictReader(GOLDEN.read_text().splitlines()[1:]))
SHAPES: dict[str, Callable[[int, int], float]] = {
    "exponential": lambda i, n: math.exp(4 * i / n),
    "root": lambda i, n: math.sqrt(i),
    "zeros": lambda i, n: (7 * i) % 11 * (i % 3),
    "steps": lambda i, n: 1 + (5 * i) % 13,
}


def values(shape: str, n: int) -> list[float]:
    return [SHAPES[shape](i, n) for i in range(1, n + 1)]


def test_every_shape_is_there() -> None:
    assert {row["one"] for row in ROWS} == set(SHAPES) and len(ROWS) == 4 * 2 * 4


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(list(row.values())[:5]))
def test_as_r(row: dict[str, str]) -> None:
    one, two = values(row["one"], int(row["n"])), values(row["two"], int(row["m"]))
    found = bootstrap.abc_interval(one, two, 0.9, paired=row["paired"] == "1")
    if row["low"] == "NaN":  # what does not vary
        assert found is None and one == two
        return
    assert found is not None
    assert (found.low, found.high) == pytest.approx((float(row["low"]), float(row["high"])), rel=1e-6)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("zeros", [False, True])
def test_as_resamples(zeros: bool, paired: bool) -> None:
    """What many resamples give, within their own error: 20,000 place a 5 % quantile within 3 % of the interval's width."""
    rng = np.random.default_rng(7)
    common = rng.normal(0, 1, bootstrap.MANY)
    one, two = (np.exp(common * 0.5 + rng.normal(0, 1, bootstrap.MANY)) for _ in range(2))
    if zeros:
        one = np.where(rng.random(len(one)) < 0.2, 0.0, one)
    x, y = (one, two) if zeros else (np.log(one), np.log(two))

    def statistic(x: Floats, y: Floats, axis: int = -1) -> Floats:
        one, two = np.asarray(np.mean(x, axis)), np.asarray(np.mean(y, axis))
        return one / two if zeros else one - two

    expected = resampled(
        (x, y), statistic, method="BCa", paired=paired, n_resamples=20_000, batch=2000, confidence_level=0.9, rng=1
    ).confidence_interval
    found = bootstrap.ratio_interval(list(one), list(two), 0.9, paired=paired)
    assert found is not None
    ends = (found.low, found.high) if zeros else (math.log(found.low), math.log(found.high))
    assert ends == pytest.approx((expected.low, expected.high), abs=0.03 * (expected.high - expected.low))


def test_a_ratio_to_nothing_or_of_what_does_not_vary_has_none() -> None:
    assert bootstrap.abc_interval([1.0, 2.0, 0.0], [0.0, 0.0, 0.0], 0.9) is None
    assert bootstrap.abc_interval([2.0, 2.0], [4.0, 4.0], 0.9) is None
