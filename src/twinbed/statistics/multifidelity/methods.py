"""Multifidelity Monte Carlo: the closed form of each model's number of draws.

Peherstorfer, Willcox and Gunzburger 2016, SIAM J. Sci. Comput. 38:A3163, theorem 3.4 and algorithms 1 and 2.  With models in
falling order of |rho| with the expensive one, rho_k of the last + 1 being 0, model k gets r_k as many draws as the expensive
one:

    r_k = sqrt(w_0 (rho_k^2 - rho_k+1^2) / (w_k (1 - rho_1^2))),   variance = s_0^2 / B (sum sqrt(w_k (rho_k^2 - rho_k+1^2)))^2

where w are costs and B the budget; rho_0 is 1.  It holds only where costs fall faster than correlations do (``hierarchy``). For
two models r is sqrt(w rho^2 / (1 - rho^2)), and the variance over plain Monte Carlo's is (sqrt(1 - rho^2) + |rho| / sqrt(w))^2
with w the expensive model's cost over the cheap one's.

Approximate control variates: cheap models that each correct the expensive one by themselves, not through one another.

Gorodetsky, Geraci, Eldred and Jakeman 2020, J. Comput. Phys. 408:109257, theorems 3 and 4.  With N draws of the expensive
model, r_i N of cheap model i, covariances C among the cheap ones and c with the expensive one, the variance of the estimated
mean is

    s_0^2 / N (1 - a^T (C o F)^-1 a),   a = diag(F) o c / s_0

    ACV-MF  F_ij = (min(r_i, r_j) - 1) / min(r_i, r_j)                      all draws from the beginning of one stream
    ACV-IS  F_ij = (r_i - 1)(r_j - 1) / (r_i r_j),  F_ii = (r_i - 1) / r_i  further draws of each model are its own

The multilevel best linear unbiased estimator: any groups of models that run the same draws, mixed as well as is possible.

Schaden and Ullmann 2020, SIAM/ASA J. Uncertainty Quantification 8:601.  Group g has m_g draws, R_g the rows of its models and
C_g their covariances.  The variance of the estimated mean is then e_0^T (sum m_g R_g^T C_g^-1 R_g)^-1 e_0, the least of all
linear unbiased estimates.  It is convex in the numbers of draws, and so is the worst of several outputs.  Sequential quadratic
programming with exact derivatives therefore finds the best division of a budget.
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
    """Return the draws of each model per draw of the expensive model, which is the first."""
    squares = np.append(rho**2, 0.0)
    return np.asarray(np.sqrt(costs[0] * (squares[:-1] - squares[1:]) / (costs * (1 - squares[1]))))


def mfmc_of(covariance: Matrix, costs: Matrix, budget: float, models: Sequence[int]) -> Allocation | None:
    """Return the closed form for one output and these cheap models; None if it does not hold for them."""
    rho = correlations(covariance)
    order = [0, *sorted(models, key=lambda model: -abs(rho[model]))]
    if not hierarchy(rho[order], costs[order]):
        return None
    r = ratios(rho[order], costs[order])
    draws = budget / float(costs[order] @ r)
    groups = nested(order, [float(draws * ratio) for ratio in r])
    return Allocation(
        Method.MFMC, groups, relative(covariance[np.newaxis], costs, budget, [_variance(covariance, r, draws, order)])
    )


def _variance(covariance: Matrix, r: Matrix, draws: float, order: Sequence[int]) -> float:
    """Return the variance of the estimate with the optimal weights (lemma 3.3)."""
    squares = correlations(covariance)[list(order)] ** 2
    reduction = sum((1 / r[k - 1] - 1 / r[k]) * squares[k] for k in range(1, len(order)))
    return float(covariance[0, 0] / draws * (1 - reduction))


def mfmc(covariances: Matrix, costs: Matrix, budget: float) -> Allocation:
    """Return the best of all choices of cheap models (algorithm 1); plain Monte Carlo if none is better. With several outputs
    it takes the closed form for that output by which the worst relative variance of all is least."""
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


LEAST_LOG, MOST_LOG = np.log(1e-4), np.log(1e6)
"""The range of the logarithm of r - 1."""
STARTS = (0.0, 2.0, 4.0)
"""Start values of this logarithm: in each, cheaper models get more by the root of the cost."""


def acv_variance(covariance: Matrix, draws: float, r: Matrix, method: Method) -> float:
    """Return the variance of the mean from ``draws`` draws of the expensive model and ``r`` times as many of each cheap one."""
    least = np.minimum.outer(r, r)
    factors = (least - 1) / least
    if method is Method.ACV_IS:
        single = (r - 1) / r
        factors = np.where(np.eye(len(r), dtype=bool), np.diag(single), np.outer(single, single))
    a = np.diag(factors) * covariance[0, 1:]
    reduction = float(a @ np.linalg.solve(covariance[1:, 1:] * factors, a)) / covariance[0, 0]
    return float(covariance[0, 0] / draws * (1 - reduction))


def acv_of(covariances: Matrix, costs: Matrix, budget: float, models: Sequence[int], method: Method) -> Allocation:
    """Allocate draws to these cheap models so that the worst relative variance is least."""
    chosen = [0, *models]
    own, prices = covariances[:, chosen][:, :, chosen], costs[chosen]

    def draws_of(r: Matrix) -> float:
        return budget / float(prices[0] + prices[1:] @ r)

    def relatives(r: Matrix) -> tuple[float, ...]:
        return relative(own, prices, budget, [acv_variance(covariance, draws_of(r), r, method) for covariance in own])

    def log_worst(x: Matrix) -> float:
        return float(np.log(max(relatives(1 + np.exp(x)))))

    spread = np.log(prices[0] / prices[1:]) / 2
    fits = [
        minimize(
            log_worst,
            np.clip(start + spread - spread.min(), LEAST_LOG, MOST_LOG),
            method="Nelder-Mead",
            bounds=[(LEAST_LOG, MOST_LOG)] * len(models),
            options={"xatol": 1e-7, "fatol": 1e-13, "maxiter": 4000, "adaptive": True},
        )
        for start in STARTS
    ]
    r = 1 + np.exp(min(fits, key=lambda fit: float(fit.fun)).x)
    return Allocation(method, _acv_groups(chosen, draws_of(r), r, method), relatives(r))


def _acv_groups(chosen: Sequence[int], draws: float, r: Matrix, method: Method) -> dict[Group, float]:
    if method is Method.ACV_MF:
        return nested(chosen, [draws, *(float(draws * ratio) for ratio in r)])
    own: dict[Group, float] = {(model,): float(draws * (ratio - 1)) for model, ratio in zip(chosen[1:], r, strict=True)}
    return {tuple(chosen): draws, **own}


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


LEAST_SHARE = 1e-7
"""The least share of the budget while it is divided: with 0 the information on a model may be singular."""
NONE = 1e-5
"""A group with a smaller share of the budget gets none."""
STEPS = 1000
PRECISION = 1e-10


def groups_of(models: int) -> list[Group]:
    """Return every set of models."""
    return [group for size in range(1, models + 1) for group in combinations(range(models), size)]


def mlblue(covariances: Matrix, costs: Matrix, budget: float) -> Allocation:
    """Divide the budget so that the worst relative variance of all outputs is least."""
    every = checked(covariances, costs, budget)
    groups = groups_of(len(costs))
    prices = np.asarray([sum(costs[model] for model in group) for group in groups])
    shares = _divide(np.asarray([_group_information(matrix, groups, prices, costs) for matrix in every]))
    shares[shares < NONE] = 0
    shares /= shares.sum()
    counts = {group: float(share * budget / price) for group, share, price in zip(groups, shares, prices, strict=True) if share}
    return Allocation(Method.MLBLUE, counts, relative(every, costs, budget, list(blue_variances(every, counts))))


def _group_information(covariance: Matrix, groups: list[Group], prices: Matrix, costs: Matrix) -> Matrix:
    """Return each group's information on the means, bought for the whole budget: (groups, models, models). Its unit is what
    plain Monte Carlo buys."""
    blocks = np.zeros((len(groups), len(costs), len(costs)))
    for at, group in enumerate(groups):
        blocks[at][np.ix_(group, group)] = np.linalg.inv(covariance[np.ix_(group, group)])
    return np.asarray(blocks * (covariance[0, 0] * costs[0] / prices)[:, np.newaxis, np.newaxis])


def _relative_variance(information: Matrix, shares: Matrix) -> tuple[float, Matrix]:
    """Return the relative variance of the expensive model's mean, and its derivatives by the shares of the budget."""
    first = np.linalg.solve(np.tensordot(shares, information, 1), np.eye(information.shape[1])[0])
    return float(first[0]), -np.einsum("i,gij,j->g", first, information, first)


def _divide(information: Matrix) -> Matrix:
    """Return shares of the budget; ``information`` is (outputs, groups, models, models). The last unknown is the worst
    variance."""
    groups = information.shape[1]
    even = np.full(groups, 1 / groups)

    def slack(z: Matrix) -> Matrix:
        return np.asarray([z[-1] - _relative_variance(matrix, z[:-1])[0] for matrix in information])

    def slack_slopes(z: Matrix) -> Matrix:
        return np.asarray([np.append(-_relative_variance(matrix, z[:-1])[1], 1.0) for matrix in information])

    last, sums = np.append(np.zeros(groups), 1.0), np.append(np.ones(groups), 0.0)
    solution = minimize(
        lambda z: z[-1],
        np.append(even, max(_relative_variance(matrix, even)[0] for matrix in information)),
        jac=lambda _: last,
        bounds=[(LEAST_SHARE, 1.0)] * groups + [(0.0, None)],
        constraints=[
            {"type": "ineq", "fun": slack, "jac": slack_slopes},
            {"type": "eq", "fun": lambda z: z[:-1].sum() - 1, "jac": lambda _: sums},
        ],
        method="SLSQP",
        options={"maxiter": STEPS, "ftol": PRECISION},
    )
    return np.asarray(solution.x[:-1])
