"""Approximate control variates: cheap models that each correct the expensive one by themselves, not through one another.

Gorodetsky, Geraci, Eldred and Jakeman 2020, J. Comput. Phys. 408:109257, theorems 3 and 4.  With N draws of the expensive
model, r_i N of cheap model i, covariances C among the cheap ones and c with the expensive one, the variance of the estimated
mean is

    s_0^2 / N (1 - a^T (C o F)^-1 a),   a = diag(F) o c / s_0

    ACV-MF  F_ij = (min(r_i, r_j) - 1) / min(r_i, r_j)                      all draws from the beginning of one stream
    ACV-IS  F_ij = (r_i - 1)(r_j - 1) / (r_i r_j),  F_ii = (r_i - 1) / r_i  further draws of each model are its own
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from twinbed.statistics.multifidelity.allocation import (
    Allocation,
    Group,
    Matrix,
    Method,
    checked,
    monte_carlo,
    nested,
    relative,
)

LEAST_LOG, MOST_LOG = np.log(1e-4), np.log(1e6)
"""The range of the logarithm of r - 1."""
STARTS = (0.0, 2.0, 4.0)
"""Start values of this logarithm: in each, cheaper models get more by the root of the cost."""


def acv_variance(covariance: Matrix, dear: float, r: Matrix, method: Method) -> float:
    """Return the variance of the mean from ``dear`` draws of the expensive model and ``r`` times as many of each cheap one."""
    least = np.minimum.outer(r, r)
    factors = (least - 1) / least
    if method is Method.ACV_IS:
        single = (r - 1) / r
        factors = np.where(np.eye(len(r), dtype=bool), np.diag(single), np.outer(single, single))
    a = np.diag(factors) * covariance[0, 1:]
    reduction = float(a @ np.linalg.solve(covariance[1:, 1:] * factors, a)) / covariance[0, 0]
    return float(covariance[0, 0] / dear * (1 - reduction))


def acv_of(covariances: Matrix, costs: Matrix, budget: float, models: Sequence[int], method: Method) -> Allocation:
    """Allocate draws to these cheap models so that the worst relative variance is least."""
    chosen = [0, *models]
    own, prices = covariances[:, chosen][:, :, chosen], costs[chosen]

    def dear_of(r: Matrix) -> float:
        return budget / float(prices[0] + prices[1:] @ r)

    def relatives(r: Matrix) -> tuple[float, ...]:
        return relative(own, prices, budget, [acv_variance(each, dear_of(r), r, method) for each in own])

    def log_worst(x: Matrix) -> float:
        return float(np.log(max(relatives(1 + np.exp(x)))))

    spread = np.log(prices[0] / prices[1:]) / 2
    found = [
        minimize(
            log_worst,
            np.clip(start + spread - spread.min(), LEAST_LOG, MOST_LOG),
            method="Nelder-Mead",
            bounds=[(LEAST_LOG, MOST_LOG)] * len(models),
            options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 4000, "adaptive": True},
        )
        for start in STARTS
    ]
    r = 1 + np.exp(min(found, key=lambda each: float(each.fun)).x)
    return Allocation(method, _groups(chosen, dear_of(r), r, method), relatives(r))


def _groups(chosen: Sequence[int], dear: float, r: Matrix, method: Method) -> dict[Group, float]:
    if method is Method.ACV_MF:
        return nested(chosen, [dear, *(float(dear * each) for each in r)])
    own: dict[Group, float] = {(model,): float(dear * (each - 1)) for model, each in zip(chosen[1:], r, strict=True)}
    return {tuple(chosen): dear, **own}


def acv(covariances: Matrix, costs: Matrix, budget: float) -> Allocation:
    """Return the best of both schemes over all choices of cheap models; plain Monte Carlo if none is better."""
    every = checked(covariances, costs, budget)
    best = monte_carlo(every, costs, budget)
    for size in range(1, len(costs)):
        for models in combinations(range(1, len(costs)), size):
            for method in (Method.ACV_MF, Method.ACV_IS):
                allocation = acv_of(every, costs, budget, models, method)
                if allocation.worst < best.worst:
                    best = allocation
    return best
