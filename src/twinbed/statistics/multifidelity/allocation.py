"""Allocations of draws to models, and the variance of the mean estimated from them.

Models are numbered; 0 is the expensive one whose mean is wanted.  A group is the models that run the same draws; groups have
draws of their own.  Every linear estimator of this package, nested ones too, is such a list of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Group = tuple[int, ...]
MOST_MODELS = 5
"""With more, the groups of MLBLUE are too many to search."""
SAME = 1e-6
"""Numbers of draws with a smaller relative difference are the same."""
LEAST_PAIRS = 10
"""The fewest draws of the expensive model for intervals that keep their level."""


class Method(StrEnum):
    MONTE_CARLO = "plain Monte Carlo"
    MFMC = "MFMC"
    ACV_MF = "ACV-MF"
    ACV_IS = "ACV-IS"
    MLBLUE = "MLBLUE"


@dataclass(frozen=True, slots=True)
class Allocation:
    """A plan; numbers of draws are not rounded."""

    method: Method
    groups: Mapping[Group, float]
    """Models that run the same draws -> how many draws."""
    relative: tuple[float, ...]
    """For each output the variance of the estimated mean over that of plain Monte Carlo on model 0 at the same cost."""

    @property
    def worst(self) -> float:
        return max(self.relative)

    def draws(self, model: int) -> float:
        """Return the number of draws that a model runs."""
        return sum(count for group, count in self.groups.items() if model in group)

    def cost(self, costs: Sequence[float]) -> float:
        return sum(count * costs[model] for group, count in self.groups.items() for model in group)


def checked(covariances: Matrix, costs: Matrix, budget: float) -> Matrix:
    """Return ``covariances`` with shape (outputs, models, models); one matrix is of one output. Raises ValueError where shapes
    do not agree, a cost or the budget is not above 0, or a matrix is not positive definite: two models that always agree are
    one."""
    every = np.asarray(covariances, dtype=float)
    every = every[np.newaxis] if every.ndim == 2 else every
    if every.ndim != 3 or every.shape[1:] != (len(costs), len(costs)):
        raise ValueError(f"covariances of shape {np.shape(covariances)} with {len(costs)} costs")
    if not 1 <= len(costs) <= MOST_MODELS:
        raise ValueError(f"{len(costs)} models, expected 1 to {MOST_MODELS}")
    if not (np.all(np.isfinite(costs)) and np.all(np.asarray(costs) > 0) and budget > 0):
        raise ValueError("a cost or the budget is not above 0")
    for matrix in every:
        deviations = np.sqrt(np.diag(matrix))
        if not np.all(deviations > 0) or np.linalg.eigvalsh(matrix / np.outer(deviations, deviations))[0] < 1e-12:
            raise ValueError("a covariance matrix is not positive definite: a model does not vary, or follows from the others")
    return every


def monte_carlo(covariances: Matrix, costs: Matrix, budget: float) -> Allocation:
    """Spend all of the budget on the expensive model."""
    every = checked(covariances, costs, budget)
    return Allocation(Method.MONTE_CARLO, {(0,): budget / float(costs[0])}, (1.0,) * len(every))


def nested(order: Sequence[int], counts: Sequence[float]) -> dict[Group, float]:
    """Return the groups of models that take their draws from the beginning of one stream, ``counts[k]`` of them for
    ``order[k]``."""
    ranked = sorted(zip(counts, order, strict=True))
    groups: dict[Group, float] = {}
    before = 0.0
    for at, (count, _) in enumerate(ranked):
        if count > before * (1 + SAME):
            groups[tuple(sorted(model for _, model in ranked[at:]))] = count - before
            before = count
    return groups


def blue_variances(covariances: Matrix, groups: Mapping[Group, float]) -> Matrix:
    """Return the variance of the best linear unbiased estimate of model 0's mean, for each output, with shape (outputs,). It is
    the least that is possible with these draws (Schaden and Ullmann 2020, SIAM/ASA J. Uncertainty Quantification 8:601, eq.
    3.9). Models without draws do not count."""
    used = sorted({model for group in groups for model in group})
    at = {model: place for place, model in enumerate(used)}
    variances = []
    for matrix in covariances:
        information = np.zeros((len(used), len(used)))
        for group, count in groups.items():
            rows = [at[model] for model in group]
            information[np.ix_(rows, rows)] += count * np.linalg.inv(matrix[np.ix_(group, group)])
        variances.append(np.linalg.inv(information)[at[0], at[0]])
    return np.asarray(variances)


def relative(covariances: Matrix, costs: Matrix, budget: float, variances: Sequence[float]) -> tuple[float, ...]:
    """Divide variances by those of plain Monte Carlo at the same cost."""
    return tuple(
        float(variance * budget / (matrix[0, 0] * costs[0])) for matrix, variance in zip(covariances, variances, strict=True)
    )
