"""Multifidelity Monte Carlo: the closed form of each model's number of draws.

Peherstorfer, Willcox and Gunzburger 2016, SIAM J. Sci. Comput. 38:A3163, theorem 3.4 and algorithms 1 and 2.  With models in
falling order of |rho| with the expensive one, rho_k of the last + 1 being 0, model k gets r_k as many draws as the expensive
one:

    r_k = sqrt(w_0 (rho_k^2 - rho_k+1^2) / (w_k (1 - rho_1^2))),   variance = s_0^2 / B (sum sqrt(w_k (rho_k^2 - rho_k+1^2)))^2

where w are costs and B the budget; rho_0 is 1.  It holds only where costs fall faster than correlations do (``hierarchy``). For
two models r is sqrt(w rho^2 / (1 - rho^2)), and the variance over plain Monte Carlo's is (sqrt(1 - rho^2) + |rho| / sqrt(w))^2
with w the expensive model's cost over the cheap one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from twinbed.statistics.multifidelity.allocation import (
    Allocation,
    Matrix,
    Method,
    blue_variances,
    checked,
    monte_carlo,
    nested,
    relative,
)


def correlations(covariance: Matrix) -> Matrix:
    """Return the correlation of each model with the expensive one, including itself."""
    deviations = np.sqrt(np.diag(covariance))
    return np.asarray(covariance[0] / (deviations[0] * deviations))


def hierarchy(rho: Matrix, costs: Matrix) -> bool:
    """Return whether the closed form holds for these models in this order (theorem 3.4): rho falls, and costs fall faster."""
    squares = np.append(rho**2, 0.0)
    steps = squares[:-1] - squares[1:]
    if not np.all(steps > 0):
        return False
    return bool(np.all(np.asarray(costs[:-1]) / np.asarray(costs[1:]) > steps[:-1] / steps[1:]))


def ratios(rho: Matrix, costs: Matrix) -> Matrix:
    """Draws of each model for one of the expensive one's, which is the first."""
    squares = np.append(rho**2, 0.0)
    return np.asarray(np.sqrt(costs[0] * (squares[:-1] - squares[1:]) / (costs * (1 - squares[1]))))


def mfmc_of(covariance: Matrix, costs: Matrix, budget: float, models: Sequence[int]) -> Allocation | None:
    """Return the closed form for one output and these cheap models; None if it does not hold for them."""
    rho = correlations(covariance)
    order = [0, *sorted(models, key=lambda model: -abs(rho[model]))]
    if not hierarchy(rho[order], costs[order]):
        return None
    r = ratios(rho[order], costs[order])
    dear = budget / float(costs[order] @ r)
    groups = nested(order, [float(dear * each) for each in r])
    return Allocation(
        Method.MFMC, groups, relative(covariance[np.newaxis], costs, budget, [_variance(covariance, r, dear, order)])
    )


def _variance(covariance: Matrix, r: Matrix, dear: float, order: Sequence[int]) -> float:
    """Return the variance of the estimate with the optimal weights (lemma 3.3)."""
    squares = correlations(covariance)[list(order)] ** 2
    reduction = sum((1 / r[k - 1] - 1 / r[k]) * squares[k] for k in range(1, len(order)))
    return float(covariance[0, 0] / dear * (1 - reduction))


def mfmc(covariances: Matrix, costs: Matrix, budget: float) -> Allocation:
    """Return the best of all choices of cheap models (algorithm 1); plain Monte Carlo if none is better.

    With several outputs it takes the closed form for that output by which the worst relative variance of all is least.
    """
    every = checked(covariances, costs, budget)
    best = monte_carlo(every, costs, budget)
    for size in range(1, len(costs)):
        for models in combinations(range(1, len(costs)), size):
            for covariance in every:
                allocation = mfmc_of(covariance, costs, budget, models)
                if allocation is None:
                    continue
                if len(every) > 1:
                    variances = blue_variances(every, allocation.groups)
                    allocation = Allocation(Method.MFMC, allocation.groups, relative(every, costs, budget, list(variances)))
                if allocation.worst < best.worst:
                    best = allocation
    return best
