"""Monotone regression, adjustments, rank correlations, ROC and logistic regression against R (tests/golden/contention)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from twinbed.statistics import multiplicity
from twinbed.statistics.anomaly import EXACT, kendall, spearman
from twinbed.statistics.capacity import isotonic
from twinbed.statistics.detector import area, curve, logistic

GOLDEN = Path(__file__).parent.parent / "golden" / "contention"


def rows(name: str) -> list[dict[str, str]]:
    with (GOLDEN / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def numbers(text: str) -> list[float]:
    return [float(each) for each in text.split()]


@pytest.mark.parametrize("row", rows("isotonic"))
def test_monotone_regression(row: dict[str, str]) -> None:
    y, weights = numbers(row["y"]), numbers(row["w"])
    assert isotonic(y) == pytest.approx(numbers(row["plain"]), abs=1e-12)
    assert isotonic(y, weights) == pytest.approx(numbers(row["weighted"]), abs=1e-12)
    assert isotonic(y, increasing=False) == pytest.approx(numbers(row["falling"]), abs=1e-12)


@pytest.mark.parametrize("row", rows("adjusted"))
def test_adjusted_p_values(row: dict[str, str]) -> None:
    p = numbers(row["p"])
    assert multiplicity.benjamini_hochberg(p) == pytest.approx(numbers(row["bh"]), rel=1e-14)
    assert multiplicity.holm(p) == pytest.approx(numbers(row["holm"]), rel=1e-14)


@pytest.mark.parametrize("row", rows("correlation"))
def test_rank_correlations(row: dict[str, str]) -> None:
    x, y, n = numbers(row["x"]), numbers(row["y"]), int(row["n"])
    rho, tau = spearman(x, y), kendall(x, y)
    assert rho is not None and tau is not None
    assert rho.value == pytest.approx(float(row["rho"]), rel=1e-12)
    assert tau.value == pytest.approx(float(row["tau"]), rel=1e-12)
    assert tau.p_value == pytest.approx(float(row["p_tau"]), rel=1e-9)
    if n > EXACT:
        assert rho.p_value == pytest.approx(float(row["p_rho_t"]), rel=1e-9)
    elif row["ties"] == "0":
        assert rho.p_value == pytest.approx(float(row["p_rho"]), rel=1e-9)


def test_spearman_with_ties_counts_all_orders() -> None:
    # Of 1, 1, 2, 3 against 1, 2, 3, 4: 24 orders, each pattern twice. The greatest rho has 2 of them, the least 2.
    found = spearman([1, 1, 2, 3], [1, 2, 3, 4])
    assert found is not None and found.p_value == pytest.approx(4 / 24)


@pytest.mark.parametrize("row", rows("roc"))
def test_area_under_the_curve_and_its_interval(row: dict[str, str]) -> None:
    high, low = numbers(row["high"]), numbers(row["low"])
    found = area(high, low)
    assert found.interval is not None
    assert [found.value, found.error, found.interval.low, found.interval.high] == pytest.approx(
        [float(row[name]) for name in ("area", "error", "lower", "upper")], rel=1e-9
    )
    points = curve(high, low)
    assert (points[0].false_alarms, points[0].detected) == (0, 0)
    assert (points[-1].false_alarms, points[-1].detected) == (1, 1)
    under = np.trapezoid([point.detected for point in points], [point.false_alarms for point in points])
    assert float(under) == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize("row", rows("logistic"))
def test_logistic_regression(row: dict[str, str]) -> None:
    table = rows("infert")
    names = ("age", "parity", "induced", "spontaneous")
    columns = np.array([[float(one[name]) for name in names] for one in table])
    kinds = np.array([one["case"] == "1" for one in table])
    found = logistic(columns, kinds, ridge=float(row["ridge"]) or 1e-12)
    # optim stops where the loss no longer changes, which is half as many digits in its place.
    tolerance = 1e-9 if row["ridge"] == "0" else 1e-5
    assert [found.intercept, *found.coefficients] == pytest.approx(numbers(row["coefficients"]), rel=tolerance)
