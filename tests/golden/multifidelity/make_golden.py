"""Makes pyapprox.json: allocations and estimates by PyApprox 2.0.0 (MIT licence; https://github.com/sandialabs/pyapprox).

    pip install "pyapprox==2.0.0" "cvxpy==1.9.3"
    python make_golden.py

Nothing of twinbed is imported. Each of 20 covariances is that of 2 to 5 models that share a common part, at costs that fall by
a random factor. PyApprox optimises each:

    mfmc      MFMCEstimator, its closed form; null where it says that the models "do not admit a
              hierarchy", or finds no allocation
    acv_mf    GMFEstimator with every cheap model around the dear one; PyApprox gives a model of a higher number no fewer draws,
              so it is asked with the cheap models in every order, and the best is kept
    acv_is    GISEstimator likewise, in which the order says nothing
    mlblue    MLBLUEEstimator: its default optimizer, and its semidefinite program at budgets that the solver's scale suits; the
              best is kept

Draws are those before PyApprox rounds them. ``variance`` is of the estimated mean, by PyApprox at those draws.
``estimates`` are of MLBLUEEstimator with values that are drawn here, by group of models.
"""

import itertools
import json
import warnings
from pathlib import Path

import cvxpy
import numpy as np
from pyapprox.statest.acv import ACVAllocator, AnalyticalAllocator, GISEstimator, GMFEstimator, MFMCEstimator
from pyapprox.statest.groupacv import (
    FittedGroupACVEstimator,
    GroupACVAllocationOptimizer,
    GroupACVAllocationResult,
    MLBLUEEstimator,
    MLBLUESPDAllocationOptimizer,
)
from pyapprox.statest.statistics import MultiOutputMean
from pyapprox.util.backends.numpy import NumpyBkd

BUDGET = 1000.0
BKD = NumpyBkd()
warnings.simplefilter("ignore")


def statistic(covariance):
    stat = MultiOutputMean(1, BKD)
    stat.set_pilot_quantities(BKD.asarray(covariance))
    return stat


def by_model(estimator, result, order):
    """Draws of each model in its own number, and the variance."""
    draws = estimator._compute_nsamples_per_model(result.continuous_npartition_samples)
    every = np.empty(len(order))
    every[list(order)] = draws
    covariance = estimator._covariance_from_npartition_samples(result.continuous_npartition_samples)
    return {"draws": every.tolist(), "variance": float(np.asarray(covariance)[0, 0])}


def mfmc(covariance, costs):
    rho = covariance[0] / np.sqrt(covariance[0, 0] * np.diag(covariance))
    order = [0, *sorted(range(1, len(costs)), key=lambda model: -abs(rho[model]))]
    estimator = MFMCEstimator(statistic(covariance[np.ix_(order, order)]), BKD.asarray(costs[order]))
    try:
        result = AnalyticalAllocator(estimator).allocate(BUDGET)
    except ValueError as error:
        assert "hierarchy" in str(error)
        return None
    return by_model(estimator, result, order) if result.success else None


def acv(covariance, costs, kind):
    best = None
    for cheap in itertools.permutations(range(1, len(costs))):
        order = [0, *cheap]
        estimator = kind(
            statistic(covariance[np.ix_(order, order)]),
            BKD.asarray(costs[order]),
            recursion_index=BKD.zeros((len(cheap),), dtype=int),
        )
        result = ACVAllocator(estimator).allocate(BUDGET)
        if not result.success:
            continue
        found = by_model(estimator, result, order)
        if best is None or found["variance"] < best["variance"]:
            best = found
        if kind is GISEstimator:
            break
    return best


def mlblue(covariance, costs):
    estimator = MLBLUEEstimator(statistic(covariance), BKD.asarray(costs))
    found = []
    result = GroupACVAllocationOptimizer(estimator).optimize(BUDGET, min_nhf_samples=1)
    if result.success:
        found.append(np.asarray(result.relaxed_npartition_samples))
    for budget in (1.0, 10.0, 100.0):
        precise = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
        try:
            program = MLBLUESPDAllocationOptimizer(estimator, solver_kwargs=precise)
            result = program.optimize(budget, min_nhf_samples=0, round_nsamples=False)
        except cvxpy.SolverError:
            continue
        if result.success:
            counts = np.maximum(np.asarray(result.npartition_samples), 0)
            price = np.array([sum(costs[model] for model in subset) for subset in estimator._subsets])
            found.append(counts * BUDGET / (counts @ price))
    variances = [float(estimator._covariance_from_npartition_samples(each)[0, 0]) for each in found]
    best = int(np.argmin(variances))
    groups = ["+".join(str(int(model)) for model in subset) for subset in estimator._subsets]
    return {"groups": dict(zip(groups, found[best].tolist(), strict=True)), "variance": variances[best]}


def estimate(covariance, costs, rng):
    estimator = MLBLUEEstimator(statistic(covariance), BKD.asarray(costs))
    counts = rng.integers(2, 6, estimator.nsubsets())
    per_model = estimator._compute_nsamples_per_model(BKD.asarray(counts, dtype=float))
    result = GroupACVAllocationResult(counts, np.asarray(per_model, dtype=int), 0.0, BKD.array([0.0]), True)
    fitted = FittedGroupACVEstimator(estimator, result)
    factor = np.linalg.cholesky(covariance)
    values = []
    for subset, count in zip(estimator._subsets, counts, strict=True):
        every = 3 + factor @ rng.standard_normal((len(costs), count))
        values.append(np.round(every[[int(model) for model in subset]], 6))
    groups = ["+".join(str(int(model)) for model in subset) for subset in estimator._subsets]
    return {
        "values": {group: each.tolist() for group, each in zip(groups, values, strict=True)},
        "estimate": float(fitted._estimate(values)[0]),
        "variance": float(np.asarray(fitted.covariance())[0, 0]),
    }


def main():
    rng = np.random.default_rng(20190221)
    cases = []
    for number in range(20):
        models = 2 + number % 4
        common = 1 + 0.35 * rng.standard_normal((models, 3)) * np.array([1.0, 1.0, 0.5])
        own = rng.uniform(0.02, 0.3, models)
        covariance = np.round(common @ common.T + np.diag(own), 9)
        costs = np.round(np.cumprod([1.0, *(1 / rng.uniform(3, 30, models - 1))]), 9)
        case = {
            "covariance": covariance.tolist(),
            "costs": costs.tolist(),
            "budget": BUDGET,
            "mfmc": mfmc(covariance, costs),
            "acv_mf": acv(covariance, costs, GMFEstimator),
            "acv_is": acv(covariance, costs, GISEstimator),
            "mlblue": mlblue(covariance, costs),
            "estimates": estimate(covariance, costs, rng),
        }
        cases.append(case)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    Path("pyapprox.json").write_text(f"[{lines}]\n")


main()
