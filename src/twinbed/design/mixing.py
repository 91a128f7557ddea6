"""Draws on several testbeds: whole numbers from the allocations of ``statistics/multifidelity``, and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.statistics.multifidelity.allocation import (
    LEAST_PAIRS,
    Allocation,
    Group,
    Matrix,
    Method,
    blue_variances,
    monte_carlo,
)
from twinbed.statistics.multifidelity.decision import needed_correlation
from twinbed.statistics.multifidelity.methods import acv, correlations, mfmc, mlblue

SIMPLER = 1.05
"""A simpler method is chosen if its variance is less than this times the best."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One method's plan, in whole draws."""

    method: Method
    samples: Mapping[Group, int]
    """Models that run the same draws -> how many. Model 0 is the expensive one."""
    relative: tuple[float, ...]
    """For each output the variance of the mean times the plan's cost, over the same for plain Monte Carlo; with weights
    estimated from the draws."""

    @property
    def worst(self) -> float:
        return max(self.relative)

    def draws(self, model: int) -> int:
        return sum(count for group, count in self.samples.items() if model in group)


def plans(covariances: Matrix, costs: Matrix, budget: float) -> list[Plan]:
    """Return plain Monte Carlo first, then each method's plan. Raises ValueError as ``checked`` does. Methods are left out that
    find nothing better, or mean fewer than LEAST_PAIRS draws of the expensive model. ``covariances`` is (outputs, models,
    models), ``costs`` of one draw."""
    methods = (monte_carlo, mfmc, acv, mlblue)
    made = [_plan(method(covariances, costs, budget), covariances, costs, budget) for method in methods]
    plain = Plan(Method.MONTE_CARLO, {(0,): max(int(budget / costs[0]), 1)}, (1.0,) * len(covariances))
    return [plain, *(plan for plan in made if plan is not None and set(plan.samples) != {(0,)})]


def best(candidates: Sequence[Plan]) -> Plan:
    """Return the first plan, from simple to general, whose worst output is about as good as the best's; plain Monte Carlo if no
    plan gains."""
    least = min(plan.worst for plan in candidates)
    return next(plan for plan in candidates if plan.worst <= least * SIMPLER) if least < 1 else candidates[0]


def _plan(allocation: Allocation, covariances: Matrix, costs: Matrix, budget: float) -> Plan | None:
    """Round within the budget. Draws of the expensive model are at least LEAST_PAIRS, at the cost of the others."""
    draws = allocation.draws(0)
    few = max(LEAST_PAIRS / draws, 1.0)
    with_expensive = {
        group: math.ceil(count * few) if few > 1 else math.floor(count)
        for group, count in allocation.groups.items()
        if 0 in group
    }
    spent = sum(count * _price(group, costs) for group, count in with_expensive.items())
    others = {group: count for group, count in allocation.groups.items() if 0 not in group}
    wanted = sum(count * _price(group, costs) for group, count in others.items())
    scale = (budget - spent) / wanted if wanted else 0.0
    samples = {group: count for group, count in with_expensive.items() if count}
    samples |= {group: math.floor(count * scale) for group, count in others.items() if math.floor(count * scale) > 0}
    n, cheap = sum(with_expensive.values()), len({model for group in samples for model in group if model})
    if scale < 0 or n - cheap - 2 <= 0 or not any(0 in group for group in samples):
        return None
    cost = sum(count * _price(group, costs) for group, count in samples.items())
    try:
        variances = blue_variances(covariances, samples)
    except np.linalg.LinAlgError:
        return None
    # What estimating the weights costs (Lavenberg and Welch 1981).
    loss = (n - 2) / (n - cheap - 2)
    relative = tuple(
        float(variance * loss * cost / (matrix[0, 0] * costs[0]))
        for variance, matrix in zip(variances, covariances, strict=True)
    )
    return Plan(allocation.method, samples, relative)


def _price(group: Group, costs: Matrix) -> float:
    return float(sum(costs[model] for model in group))


def why_not(covariances: Matrix, costs: Matrix, names: Sequence[str]) -> str:
    """Return why no mix pays: for each cheap model its least correlation, and the correlation needed at its cost."""
    parts = []
    for model in range(1, len(costs)):
        rho = min(abs(float(correlations(matrix)[model])) for matrix in covariances)
        times = float(costs[0] / costs[model])
        if times <= 1:
            parts.append(f"a run on {names[model]} takes {1 / times:.2g} times as long as on {names[0]}")
        else:
            needed = needed_correlation(times)
            text = f"{names[model]} correlates by {rho:.2f}; at 1/{times:.3g} of the time it needs more than {needed:.2f}"
            parts.append(text if rho <= needed else f"{text}, but the time allows too few draws")
    return "; ".join(parts)
