"""Allocations and estimates of multifidelity Monte Carlo against PyApprox (tests/golden/multifidelity), closed forms and
scipy."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from twinbed.statistics.multifidelity.allocation import Allocation, Method, blue_variances, monte_carlo
from twinbed.statistics.multifidelity.decision import decide, needed_correlation, variance_at_equal_cost
from twinbed.statistics.multifidelity.estimate import blue, em, information, mixed, parts, plain
from twinbed.statistics.multifidelity.methods import acv, acv_of, mfmc, mfmc_of, mlblue

GOLDEN = Path(__file__).parent.parent / "golden" / "multifidelity" / "pyapprox.json"
CASES: list[dict[str, Any]] = json.loads(GOLDEN.read_text())
WITHIN = 0.01


def of(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    return np.asarray(case["covariance"]), np.asarray(case["costs"]), float(case["budget"])


def variance(case: dict[str, Any], allocation: Allocation) -> float:
    covariance, costs, budget = of(case)
    return allocation.worst * covariance[0, 0] * costs[0] / budget


def test_there_are_20_covariances_of_2_to_5_models() -> None:
    assert len(CASES) == 20
    assert {len(case["costs"]) for case in CASES} == {2, 3, 4, 5}
    assert sum(case["mfmc"] is not None for case in CASES) >= 8


@pytest.mark.parametrize("case", CASES)
def test_mfmc_has_pyapprox_allocation(case: dict[str, Any]) -> None:
    covariance, costs, budget = of(case)
    ours = mfmc_of(covariance, costs, budget, range(1, len(costs)))
    theirs = case["mfmc"]
    if theirs is None:
        assert ours is None
        return
    assert ours is not None
    assert [ours.draws(model) for model in range(len(costs))] == pytest.approx(theirs["draws"], rel=WITHIN)
    assert variance(case, ours) == pytest.approx(theirs["variance"], rel=WITHIN)


@pytest.mark.parametrize(("method", "key"), [(Method.ACV_MF, "acv_mf"), (Method.ACV_IS, "acv_is")])
@pytest.mark.parametrize("case", CASES)
def test_acv_has_pyapprox_allocation(case: dict[str, Any], method: Method, key: str) -> None:
    covariance, costs, budget = of(case)
    ours = acv_of(covariance[np.newaxis], costs, budget, range(1, len(costs)), method)
    theirs = case[key]
    assert ours.cost(list(costs)) == pytest.approx(budget)
    assert variance(case, ours) == pytest.approx(theirs["variance"], rel=WITHIN)
    for model, draws in enumerate(theirs["draws"]):
        assert ours.draws(model) * costs[model] == pytest.approx(draws * costs[model], abs=WITHIN * budget)
    # What the groups say is possible is no more than what their best linear estimator reaches.
    assert blue_variances(covariance[np.newaxis], ours.groups)[0] <= variance(case, ours) * (1 + 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_mlblue_has_pyapprox_allocation(case: dict[str, Any]) -> None:
    covariance, costs, budget = of(case)
    ours = mlblue(covariance, costs, budget)
    assert ours.cost(list(costs)) == pytest.approx(budget)
    assert variance(case, ours) == pytest.approx(case["mlblue"]["variance"], rel=WITHIN)
    for name, count in case["mlblue"]["groups"].items():
        group = tuple(map(int, name.split("+")))
        price = sum(costs[model] for model in group)
        assert ours.groups.get(group, 0) * price == pytest.approx(count * price, abs=WITHIN * budget)


@pytest.mark.parametrize("case", CASES)
def test_mlblue_variance_at_pyapprox_draws_is_theirs(case: dict[str, Any]) -> None:
    covariance, _, _ = of(case)
    groups = {tuple(map(int, name.split("+"))): count for name, count in case["mlblue"]["groups"].items() if count > 0}
    assert blue_variances(covariance[np.newaxis], groups)[0] == pytest.approx(case["mlblue"]["variance"], rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_mlblue_estimates_are_pyapprox_ones(case: dict[str, Any]) -> None:
    covariance, _, _ = of(case)
    rows = []
    for name, values in case["estimates"]["values"].items():
        block = np.full((len(values[0]), len(covariance)), np.nan)
        block[:, [int(each) for each in name.split("+")]] = np.asarray(values).T
        rows.append(block)
    every = np.vstack(rows)
    assert blue(every, covariance)[0] == pytest.approx(case["estimates"]["estimate"], rel=1e-6)
    errors = np.linalg.inv(information(covariance, parts(every)))
    assert errors[0, 0] == pytest.approx(case["estimates"]["variance"], rel=1e-6)


@pytest.mark.parametrize(("rho", "w", "expected"), [(0.95, 100, 0.1659), (0.95, 10, 0.375), (0.7, 3, 1.25)])
def test_two_models_at_equal_cost(rho: float, w: float, expected: float) -> None:
    assert variance_at_equal_cost(rho, w) == pytest.approx(expected, rel=0.002)
    covariance, costs = np.array([[1, rho], [rho, 1]]), np.array([w, 1.0])
    allocation = mfmc(covariance, costs, 1000.0)
    if expected < 1:
        assert allocation.worst == pytest.approx(expected, rel=0.002)
        assert allocation.draws(1) / allocation.draws(0) == pytest.approx(math.sqrt(w * rho**2 / (1 - rho**2)))
        assert rho > needed_correlation(w)
    else:
        assert allocation == monte_carlo(covariance, costs, 1000.0)
        assert rho < needed_correlation(w)
    # MLBLUE can do no better with two models (Schaden and Ullmann 2020, section 4), nor worse.
    assert mlblue(covariance, costs, 1000.0).worst == pytest.approx(min(expected, 1), rel=0.002)


def test_several_outputs_are_planned_by_the_worst() -> None:
    """The one that a cheap model says nothing of decides: it gets what plain Monte Carlo would not lose."""
    good, bad = (np.array([[1, rho], [rho, 1]]) for rho in (0.99, 0.6))
    costs = np.array([50.0, 1.0])
    both = np.asarray([good, bad])
    for method in (mfmc, acv, mlblue):
        allocation = method(both, costs, 1000.0)
        alone = [method(each, costs, 1000.0) for each in (good, bad)]
        assert allocation.worst == max(allocation.relative)
        assert allocation.worst >= max(each.worst for each in alone) * (1 - 1e-6)
        assert allocation.worst <= 1
        other = blue_variances(both, alone[0].groups)[1] * 1000 / 50
        assert allocation.worst < other
    assert mlblue(both, costs, 1000.0).relative[1] == pytest.approx(mlblue(bad, costs, 1000.0).worst, rel=0.01)


def test_a_model_that_follows_from_another_is_refused() -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        mlblue(np.ones((2, 2)), np.array([10.0, 1.0]), 100.0)


def test_with_all_draws_shared_and_no_more_the_mean_is_plain() -> None:
    """Control variates from the same draws alone correct nothing."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(12)
    values = np.column_stack([x + rng.standard_normal(12), x])
    assert mixed(values, [1], 0.95).value == pytest.approx(plain(values, 0.95).value, rel=1e-12)


def test_regression_is_least_squares_at_the_mean_of_all_draws() -> None:
    """scipy's linregress: its line at the cheap mean, and its standard errors of slope and intercept."""
    rng = np.random.default_rng(2)
    n, further = 11, 5_000_000
    x = rng.standard_normal(n)
    y = 3 + 2 * x + 0.3 * rng.standard_normal(n)
    # So many further draws that their mean is known: the interval is that of the line at one place.
    values = np.full((n + 2, 2), np.nan)
    values[:n] = np.column_stack([y, x])
    values[n:, 1] = 0.5, 0.7
    line = stats.linregress(x, y)
    centre = float(np.nanmean(values[:, 1]))
    estimate = mixed(values, [1], 0.95)
    assert estimate.value == pytest.approx(line.intercept + line.slope * centre, rel=1e-12)
    errors = y - line.intercept - line.slope * x
    at = math.sqrt(errors @ errors / (n - 2) * (1 / n + (centre - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()))
    sampled = line.slope**2 * np.nanvar(values[:, 1], ddof=1) / (n + 2)
    assert estimate.standard_error == pytest.approx(math.sqrt(at**2 + sampled), rel=1e-12)
    assert n - 2 < estimate.df < 2 * n
    assert further


def test_em_of_nested_draws_is_the_regression() -> None:
    """Anderson 1957 (J. Am. Stat. Assoc. 52:200): where draws are nested, maximum likelihood is the regression estimate."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(40)
    y = 1 + x + 0.5 * rng.standard_normal(40)
    y[15:] = np.nan
    values = np.column_stack([y, x])
    means, covariance = em(values)
    assert means[0] == pytest.approx(mixed(values, [1], 0.95).value, rel=1e-6)
    slope = stats.linregress(x[:15], y[:15]).slope
    assert covariance[0, 1] / covariance[1, 1] == pytest.approx(slope, rel=1e-5)


def test_refusals_say_why() -> None:
    rng = np.random.default_rng(4)
    names = ["physical", "virtio"]
    apart = np.full((40, 2), np.nan)
    apart[:20, 0], apart[18:, 1] = rng.standard_normal(20), rng.standard_normal(22)
    decision = decide(apart, 0.95, names)
    assert not decision.estimate.models
    assert decision.refusal == "virtio shares 2 draws with physical, fewer than 5: only shared draws correlate"
    unlike = rng.standard_normal((200, 2))
    unlike[20:, 0] = np.nan
    assert "virtio correlates by" in decide(unlike, 0.95, names).refusal
    same = np.column_stack([unlike[:20, 0], unlike[:20, 0] + 0.01 * unlike[:20, 1]])
    assert "no draws beyond those of physical" in decide(same, 0.95, names).refusal
