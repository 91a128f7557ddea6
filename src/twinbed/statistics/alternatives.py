"""Tests of equal means or locations that assume less than analysis of variance.

Function ``welch_anova`` is for one factor whose variances differ (Welch 1951).  Function ``kruskal_wallis`` is for one factor
and any distribution of one shape, by ranks with the correction for ties (1952).  Function ``permutation`` is for any term of a
model with exchangeable errors of any distribution. It permutes residuals of the model without the term (Freedman & Lane 1983),
and its p-value counts the data's own order (Phipson & Smyth 2010).  A result is None if the data do not allow the test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.anova import Cells, Term, before_of, directions, fit, freedom
from twinbed.statistics.assumptions import Tested
from twinbed.statistics.distribution import f_tail

Floats = NDArray[np.float64]
ROUNDS = 1999
"""The number of permutations: the least p-value is 1/2000, and the error of one near 0.05 is 0.005."""
MOST_WORK = 5e8
"""Multiplications a term may take."""


@dataclass(frozen=True, slots=True)
class Group:
    """A level's values, summed up; ``variance`` has n - 1 in its denominator."""

    n: int
    mean: float
    variance: float


def welch_anova(groups: Sequence[Group]) -> Tested | None:
    """Test equal means where variances differ; None where a group has one value or does not vary."""
    if len(groups) < 2 or any(group.n < 2 or group.variance <= 0 for group in groups):
        return None
    weights = [group.n / group.variance for group in groups]
    total, k = math.fsum(weights), len(groups)
    mean = math.fsum(weight * group.mean for weight, group in zip(weights, groups, strict=True)) / total
    spread = math.fsum((1 - w / total) ** 2 / (g.n - 1) for w, g in zip(weights, groups, strict=True)) / (k * k - 1)
    between = math.fsum(w * (g.mean - mean) ** 2 for w, g in zip(weights, groups, strict=True)) / (k - 1)
    statistic, freedom = between / (1 + 2 * (k - 2) * spread), 1 / (3 * spread)
    return Tested("Welch's ANOVA", statistic, (k - 1, freedom), f_tail(statistic, k - 1, freedom))


def kruskal_wallis(groups: Sequence[Floats]) -> Tested | None:
    """Test equal locations by ranks; None where all values are the same."""
    from scipy.stats import kruskal

    if len(groups) < 2 or np.ptp(np.concatenate(groups)) <= 0:
        return None
    test = kruskal(*groups)
    return Tested("Kruskal-Wallis", float(test.statistic), (len(groups) - 1,), float(test.pvalue))


def permutation(of: Cells, terms: Sequence[Term], at: int, kind: str, seed: int) -> Tested | None:
    """Compare F of a term (with the mean square of the whole model's errors) with those of permuted residuals.

    None where there are no errors, or for more work than MOST_WORK.
    """
    model = fit(of, terms)
    free, parameters = model.error_freedom, model.design.shape[1]
    if free <= 0 or model.error <= 0 or float(of.n) * parameters * ROUNDS > MOST_WORK:
        return None
    root = np.sqrt(of.counts)
    own = directions(of, before_of(terms, at, kind), terms[at])
    whole, _ = np.linalg.qr(model.design * root[:, None])
    rest = [term for each, term in enumerate(terms) if each != at]
    without = fit(of, rest)
    residuals = of.centred - without.fitted[of.of_row]
    # Directions of cells are divided by the roots of counts, as for single rows, so that a product over rows is one over cells.
    mine, all_of = (own / root[:, None])[of.of_row], (whole / root[:, None])[of.of_row]
    generator = np.random.Generator(np.random.PCG64(seed))

    def statistics(values: Floats) -> Floats:
        explained = np.sum((mine.T @ values) ** 2, axis=0) / own.shape[1]
        errors = np.sum(values**2, axis=0) - np.sum((all_of.T @ values) ** 2, axis=0)
        return np.asarray(explained / (np.maximum(errors, 1e-12 * np.sum(values**2, axis=0)) / free))

    observed = float(statistics(residuals[:, None])[0])
    exceeding, left = 0, ROUNDS
    chunk = max(1, int(2e6) // of.n)
    while left:
        size = min(chunk, left)
        permuted = generator.permuted(np.tile(residuals, (size, 1)), axis=1).T
        exceeding += int(np.sum(statistics(permuted) >= observed * (1 - 1e-10)))
        left -= size
    freedoms = (freedom(terms[at], of.levels), free)
    return Tested("permutation", observed, freedoms, (exceeding + 1) / (ROUNDS + 1))
