"""Standard errors, tests and intervals of coefficients, by the assumed errors.

``classical`` takes one variance for all rows.  Function ``hc3`` takes a variance for each row (MacKinnon and White 1985;
recommended at every size by Long and Ervin 2000).  Function ``clustered`` takes rows that depend on each other within clusters,
with Stata's CR1 factor G/(G-1) (n-1)/(n-p) (Cameron and Miller 2015) and Student's t of G - 1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.least_squares import Doubles, Fit

SATURATED = 1 - 1e-10
"""A row with a larger leverage alone determines its fitted value."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """An estimate with its standard error, Student's t and two-sided p, and interval."""

    estimate: float
    standard_error: float
    statistic: float | None
    """None where the standard error is 0."""
    p_value: float | None
    low: float
    high: float


def coefficient(estimate: float, standard_error: float, degrees_of_freedom: float, level: float) -> Coefficient:
    """Return the test and interval of one estimate; ``level`` is the interval's, such as 0.95."""
    half = float(stdtrit(degrees_of_freedom, 0.5 + level / 2)) * standard_error
    statistic = estimate / standard_error if standard_error > 0 else None
    p_value = None if statistic is None else 2 * float(stdtr(degrees_of_freedom, -abs(statistic)))
    return Coefficient(estimate, standard_error, statistic, p_value, estimate - half, estimate + half)


def classical(fit: Fit) -> Doubles:
    """Return the covariance of the coefficients (p x p) where all rows have one variance."""
    return fit.variance * (fit.root @ fit.root.T)


def hc3(fit: Fit) -> Doubles:
    """Return the covariance (p x p) whatever each row's variance. Raises RegressionError if a row alone determines its fitted
    value."""
    leverage = fit.leverage
    if np.any(leverage > SATURATED):
        row = int(np.argmax(leverage))
        raise RegressionError(
            f"row {row + 1} of those used alone determines a coefficient, so its error is unknown",
            "give every combination of levels at least two rows",
        )
    weighted = fit.q * (fit.residuals / (1 - leverage))[:, None]
    return _sandwich(fit, weighted.T @ weighted)


def clustered(fit: Fit, clusters: NDArray[np.intp]) -> Doubles:
    """Return the covariance (p x p) where rows of a cluster (codes from 0) depend on each other."""
    scores = group_sums(fit.q * fit.residuals[:, None], clusters)
    count = len(scores)
    factor = count / (count - 1) * (fit.n - 1) / fit.degrees_of_freedom
    return factor * _sandwich(fit, scores.T @ scores)


def group_sums(values: Doubles, groups: NDArray[np.intp]) -> Doubles:
    """Return the sums (g x p) of the rows (n x p) of each group, whose codes run from 0 to g - 1."""
    count = int(groups.max()) + 1
    return np.stack([np.bincount(groups, column, count) for column in values.T], axis=1)


def _sandwich(fit: Fit, middle: Doubles) -> Doubles:
    return np.asarray(fit.root @ middle @ fit.root.T)
