"""Whether the residuals' variance depends on the explaining variables.

Breusch-Pagan in Koenker's studentised form (1981), which does not need normal residuals: n R^2 of the squared residuals on the
model's columns, chi-square of p - 1 degrees of freedom.  White (1980): the same on the columns, their squares and their
products, so that it also sees what they do together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from twinbed.statistics.regression.least_squares import Doubles, Fit


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A statistic that is chi-square distributed where the assumption holds."""

    statistic: float
    degrees_of_freedom: int
    p_value: float


def _chi_square(statistic: float, degrees_of_freedom: int) -> ChiSquare:
    return ChiSquare(statistic, degrees_of_freedom, float(chdtrc(degrees_of_freedom, statistic)))


def breusch_pagan(fit: Fit) -> ChiSquare | None:
    """On the model's columns. None where there is but one."""
    if fit.p < 2:
        return None
    squares = fit.residuals**2 - fit.residual_sum / fit.n
    total = float(squares @ squares)
    if total == 0:
        return _chi_square(0.0, fit.p - 1)
    explained = fit.q.T @ squares
    return _chi_square(fit.n * float(explained @ explained) / total, fit.p - 1)


def white(fit: Fit, matrix: Doubles) -> ChiSquare | None:
    """On the columns (n x p, the first constant), their squares and products. None where rows do not outnumber those."""
    if fit.p < 2:
        return None
    columns = matrix[:, 1:]
    # A column that is 0 and 1 is its own square.
    centred = columns - columns.mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    centred /= lengths
    first, second = np.triu_indices(centred.shape[1])
    products = centred[:, first] * centred[:, second]
    regressors = np.hstack([centred, products])
    regressors -= regressors.mean(axis=0)
    sizes = np.sqrt(np.einsum("ij,ij->j", regressors, regressors))
    regressors = regressors[:, sizes > 1e-12 * fit.n**-0.5]
    sizes = sizes[sizes > 1e-12 * fit.n**-0.5]
    gram = (regressors.T @ regressors) / np.outer(sizes, sizes)
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-9 * values[-1]
    rank = int(kept.sum())
    if rank + 1 >= fit.n:
        return None
    squares = fit.residuals**2
    squares = squares - squares.mean()
    total = float(squares @ squares)
    if total == 0:
        return _chi_square(0.0, rank)
    explained = (vectors[:, kept].T @ ((regressors.T @ squares) / sizes)) ** 2 / values[kept]
    return _chi_square(fit.n * float(explained.sum()) / total, rank)
