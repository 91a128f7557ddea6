"""Tests of whether the residuals' variance depends on the explaining variables.

Breusch-Pagan in Koenker's studentised form (1981), which does not need normal residuals: n R^2 of the squared residuals on the
model's columns, chi-square of p - 1 degrees of freedom.  White (1980): the same on the columns, their squares and their
products, so that it also detects their joint effects.

Normality of residuals: Shapiro and Wilk's W up to 5,000 rows (Royston 1995), Jarque and Bera's test above. Shapiro and Wilk's W
up to 5,000 rows (Royston 1995), Jarque and Bera's test above.

Jarque-Bera (1987): n/6 (skewness^2 + excess^2/4), chi-square of 2 degrees of freedom.  With very many rows every small
departure is significant, but matters less: intervals of coefficients need normal means, not normal residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from twinbed.statistics.assumptions import MOST, shapiro_wilk
from twinbed.statistics.regression.least_squares import Doubles, Fit

LEAST_A_CELL = 4
_ROWS = 4096
"""Rows are taken so many at a time, so that their products stay in the cache."""


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A statistic that is chi-square distributed where the assumption holds."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def _chi_square(statistic: float, degrees_of_freedom: int) -> ChiSquare:
    return ChiSquare(statistic, degrees_of_freedom, float(chdtrc(degrees_of_freedom, statistic)))


def few_a_cell(fit: Fit, matrix: Doubles) -> bool:
    """Return whether the model has a mean for every distinct row of its matrix (n x p), some with fewer than LEAST_A_CELL rows.
    Their residuals then say next to nothing of variances: two are the same but for the sign, so that Koenker's statistic is n,
    whatever the variances."""
    # Rows that differ have different sums with random weights.
    weights = np.random.default_rng(1981).random(matrix.shape[1])
    counts = np.unique(np.round(matrix @ weights, 9), return_counts=True)[1]
    return bool(len(counts) == fit.p and counts.min() < LEAST_A_CELL)


def breusch_pagan(fit: Fit) -> ChiSquare | None:
    """Make Breusch and Pagan's test on the model's columns. None if there is only one."""
    if fit.p < 2:
        return None
    squares = fit.residuals**2 - fit.residual_sum / fit.n
    total = float(squares @ squares)
    if total == 0:
        return _chi_square(0.0, fit.p - 1)
    explained = fit.q.T @ squares
    return _chi_square(fit.n * float(explained @ explained) / total, fit.p - 1)


def white(fit: Fit, matrix: Doubles) -> ChiSquare | None:
    """Make White's test on the columns (n x p), their squares and products. None if these outnumber the rows."""
    columns = _near_zero(matrix[:, 1:] if fit.constant else matrix)
    if not columns.shape[1]:
        return None
    squares = fit.residuals**2
    squares = squares - squares.mean()
    first, second = _distinct_products(columns)
    columns = np.hstack([columns, np.ones((fit.n, 1))])
    gram = np.zeros((len(first), len(first)))
    sums, right = np.zeros(len(first)), np.zeros(len(first))
    for start in range(0, fit.n, _ROWS):
        part = columns[start : start + _ROWS]
        products = part[:, first] * part[:, second]
        gram += products.T @ products
        sums += products.sum(axis=0)
        right += products.T @ squares[start : start + _ROWS]
    lengths = np.sqrt(np.diag(gram))
    gram = (gram - np.outer(sums, sums) / fit.n) / np.outer(lengths, lengths)
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-10 * values[-1]
    rank = int(kept.sum())
    total = float(squares @ squares)
    if rank == 0 or rank + 1 >= fit.n:
        return None
    if total == 0:
        return _chi_square(0.0, rank)
    explained = (vectors[:, kept].T @ (right / lengths)) ** 2 / values[kept]
    return _chi_square(fit.n * float(explained.sum()) / total, rank)


def _near_zero(columns: Doubles) -> Doubles:
    """Return the columns, scaled to size 1. Their origin does not change the test, but it can cost digits."""
    means, spreads = columns.mean(axis=0), columns.std(axis=0)
    moved = columns - np.where(np.abs(means) > 10 * spreads, means, 0.0)
    scaled: Doubles = moved / np.maximum(np.abs(moved).max(axis=0), np.finfo(float).tiny)
    return scaled


def _distinct_products(columns: Doubles) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return pairs of columns whose products differ and are not 0; the index after the last column stands for ones. Products of
    indicators are mostly 0 or each other. Their sums over rows with random weights distinguish them."""
    n, p = columns.shape
    weights = 0.5 + np.random.default_rng(1980).random((n,))
    weighted = columns * weights[:, None]
    sums = np.vstack([weighted.T @ columns, np.atleast_2d(weights @ columns)])
    seen: set[str] = set()
    products = []
    for first in range(p):
        for second in (p, *range(first, p)):
            total = float(sums[second, first])
            mark = f"{total:.11e}"
            if abs(total) > 1e-12 * n and mark not in seen:
                seen.add(mark)
                products.append((first, second))
    first_of, second_of = np.array(products, dtype=np.intp).reshape(-1, 2).T
    return first_of, second_of


@dataclass(frozen=True, slots=True)
class Normality:
    """``test`` is ``shapiro-wilk`` or ``jarque-bera``; skewness and excess kurtosis are moments' ratios, normally 0."""

    test: str
    statistic: float
    p_value: float
    skewness: float
    excess_kurtosis: float


def normality(residuals: Doubles) -> Normality | None:
    """Test normality; None for fewer than 8 residuals, which say nothing, or if all are the same."""
    n = len(residuals)
    centred = residuals - residuals.mean()
    variance = float(centred @ centred) / n
    if n < 8 or variance == 0:
        return None
    scaled = centred / np.sqrt(variance)
    cubes = scaled * scaled * scaled
    skewness = float(cubes.mean())
    excess = float(cubes @ scaled) / n - 3
    if n > MOST:
        statistic = n / 6 * (skewness**2 + excess**2 / 4)
        return Normality("jarque-bera", statistic, float(chdtrc(2, statistic)), skewness, excess)
    statistic, p = shapiro_wilk(residuals)
    return Normality("shapiro-wilk", statistic, p, skewness, excess)
