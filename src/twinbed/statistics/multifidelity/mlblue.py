"""The multilevel best linear unbiased estimator: any groups of models that run the same draws, mixed as well as is possible.

Schaden and Ullmann 2020, SIAM/ASA J. Uncertainty Quantification 8:601.  Group g has m_g draws, R_g the rows of its models and
C_g their covariances.  The variance of the estimated mean is then e_0^T (sum m_g R_g^T C_g^-1 R_g)^-1 e_0, the least of all
linear unbiased estimates.  It is convex in the numbers of draws, and so is the worst of several outputs.  Sequential quadratic
programming with exact derivatives therefore finds the best division of a budget.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import minimize

from twinbed.statistics.multifidelity.allocation import Allocation, Group, Matrix, Method, blue_variances, checked, relative

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
    shares = _divide(np.asarray([_information(matrix, groups, prices, costs) for matrix in every]))
    shares[shares < NONE] = 0
    shares /= shares.sum()
    counts = {group: float(share * budget / price) for group, share, price in zip(groups, shares, prices, strict=True) if share}
    return Allocation(Method.MLBLUE, counts, relative(every, costs, budget, list(blue_variances(every, counts))))


def _information(covariance: Matrix, groups: list[Group], prices: Matrix, costs: Matrix) -> Matrix:
    """Return each group's information on the means, bought for the whole budget: (groups, models, models).

    Its unit is what plain Monte Carlo buys.
    """
    blocks = np.zeros((len(groups), len(costs), len(costs)))
    for at, group in enumerate(groups):
        blocks[at][np.ix_(group, group)] = np.linalg.inv(covariance[np.ix_(group, group)])
    return np.asarray(blocks * (covariance[0, 0] * costs[0] / prices)[:, np.newaxis, np.newaxis])


def _variance(information: Matrix, shares: Matrix) -> tuple[float, Matrix]:
    """Return the relative variance of the expensive model's mean, and its derivatives by the shares of the budget."""
    first = np.linalg.solve(np.tensordot(shares, information, 1), np.eye(information.shape[1])[0])
    return float(first[0]), -np.einsum("i,gij,j->g", first, information, first)


def _divide(information: Matrix) -> Matrix:
    """Return shares of the budget; ``information`` is (outputs, groups, models, models). The last unknown is the worst
    variance."""
    groups = information.shape[1]
    even = np.full(groups, 1 / groups)

    def slack(z: Matrix) -> Matrix:
        return np.asarray([z[-1] - _variance(each, z[:-1])[0] for each in information])

    def slack_slopes(z: Matrix) -> Matrix:
        return np.asarray([np.append(-_variance(each, z[:-1])[1], 1.0) for each in information])

    last, sums = np.append(np.zeros(groups), 1.0), np.append(np.ones(groups), 0.0)
    found = minimize(
        lambda z: z[-1],
        np.append(even, max(_variance(each, even)[0] for each in information)),
        jac=lambda _: last,
        bounds=[(LEAST_SHARE, 1.0)] * groups + [(0.0, None)],
        constraints=[
            {"type": "ineq", "fun": slack, "jac": slack_slopes},
            {"type": "eq", "fun": lambda z: z[:-1].sum() - 1, "jac": lambda _: sums},
        ],
        method="SLSQP",
        options={"maxiter": STEPS, "ftol": PRECISION},
    )
    return np.asarray(found.x[:-1])
