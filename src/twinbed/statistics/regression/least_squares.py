"""Ordinary least squares by Householder QR of the scaled columns.

Columns are scaled to length 1 (Golub and Van Loan, Matrix Computations, 5.3), so that units cost no digits.  Large residuals of
an ill-conditioned matrix (above 1e3) would cost more than 6 of a double's 16 digits.  It is therefore computed in the machine's
extended precision (64 bits of mantissa on x86), columns included.  R squared and F are about the mean where the constant is in
the model, else about 0.

Limits: columns must be linearly independent; the error names those that are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from twinbed.statistics.regression.design import Design, bind
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.evaluation import Array, Column
from twinbed.statistics.regression.formula import Formula

Doubles = NDArray[np.float64]
ILL_CONDITIONED = 1e3
"""Above this condition number of the scaled columns, doubles are not enough."""
DEPENDENT = 1e-13
"""A column of length 1 with less than this outside the others' span counts as dependent on them."""
_ROUNDED = 8


@dataclass(frozen=True, slots=True)
class FTest:
    """A statistic that is F distributed, of ``numerator`` and ``denominator`` degrees of freedom, under the hypothesis."""

    statistic: float
    numerator: int
    denominator: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A least squares fit of n rows and p columns. (X'X)^-1 is ``root @ root.T``; ``q`` is an orthonormal basis of X's span."""

    coefficients: Doubles
    root: Doubles
    q: Doubles
    fitted: Doubles
    residuals: Doubles
    residual_sum: float
    total_sum: float
    """The sum of squares about the mean with a constant, else about 0."""
    constant: bool
    condition: float
    """The condition number of the columns scaled to length 1 (Belsley, Kuh and Welsch 1980, section 3.2)."""

    @property
    def n(self) -> int:
        return len(self.residuals)

    @property
    def p(self) -> int:
        return len(self.coefficients)

    @property
    def exact(self) -> bool:
        """Return whether no row has a residual."""
        return self.residual_sum == 0

    @property
    def degrees_of_freedom(self) -> int:
        return self.n - self.p

    @property
    def variance(self) -> float:
        """Return the unbiased variance of the residuals."""
        return self.residual_sum / self.degrees_of_freedom

    @property
    def r_squared(self) -> float:
        return max(0.0, 1 - self.residual_sum / self.total_sum)

    @property
    def adjusted_r_squared(self) -> float:
        return 1 - (1 - self.r_squared) * (self.n - self.constant) / self.degrees_of_freedom

    @property
    def test_of_all(self) -> FTest | None:
        """Return the test that all coefficients but the constant are 0; None without another coefficient, or without
        residuals."""
        numerator = self.p - self.constant
        if numerator == 0 or self.exact:
            return None
        statistic = max(0.0, self.total_sum - self.residual_sum) / numerator / self.variance
        return FTest(statistic, numerator, self.degrees_of_freedom, float(fdtrc(numerator, self.degrees_of_freedom, statistic)))

    @property
    def leverage(self) -> Doubles:
        """Return the diagonal of the hat matrix X (X'X)^-1 X'."""
        diagonal: Doubles = np.minimum(np.einsum("ij,ij->i", self.q, self.q), 1.0)
        return diagonal


def fit_formula(formula: Formula, data: Mapping[str, Column], bases: Mapping[str, str] | None = None) -> tuple[Design, Fit]:
    """Bind a formula to data and fit it, in extended precision if doubles would lose too many digits."""
    design = bind(formula, data, bases)
    model = fit(design.matrix, design.response, design.labels, design.constant)
    if model.condition <= ILL_CONDITIONED:
        return design, model
    design = bind(formula, data, bases, extended=True)
    return design, fit(design.matrix, design.response, design.labels, design.constant)


def fit(matrix: Array, response: Array, labels: Sequence[str], constant: bool) -> Fit:
    """Fit a matrix. Raises RegressionError for too few rows, or columns that depend on each other."""
    n, p = matrix.shape
    if n <= p:
        raise RegressionError(
            f"{n} rows do not determine {p} coefficients and their errors", f"give at least {p + 1} rows, or leave terms out"
        )
    lengths = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    if problem := _never(lengths, labels):
        raise RegressionError(problem, "leave the term out, choose other base levels, or measure such rows")
    scaled = matrix / lengths
    q, r = np.linalg.qr(scaled) if matrix.dtype == np.float64 else _householder(scaled)
    sizes = np.linalg.svd(r.astype(np.float64), compute_uv=False)
    if sizes[-1] < DEPENDENT * sizes[0]:
        raise RegressionError(
            f"columns depend on each other: {_dependences(r.astype(np.float64), lengths, labels)}",
            "the data cannot separate their effects: leave one out, or measure rows in which they differ",
        )
    condition = float(sizes[0] / sizes[-1])
    inverse = _inverse(r)
    projected = q.T @ response
    coefficients = (inverse @ projected) / lengths
    residuals = response - q @ projected
    # A second step removes what rounding left of the response in the span.
    again = q.T @ residuals
    coefficients = coefficients + (inverse @ again) / lengths
    residuals = residuals - q @ again
    centred = response - response.mean() if constant else response
    # A response is itself rounded to its last bit: less than some of those is no residual.
    if residuals @ residuals <= (_ROUNDED * np.finfo(np.float64).eps) ** 2 * (response @ response):
        residuals = np.zeros_like(residuals)
    return Fit(
        coefficients=coefficients.astype(np.float64),
        root=(inverse / lengths[:, None]).astype(np.float64),
        q=q.astype(np.float64),
        fitted=(response - residuals).astype(np.float64),
        residuals=residuals.astype(np.float64),
        residual_sum=float(residuals @ residuals),
        total_sum=float(centred @ centred),
        constant=constant,
        condition=condition,
    )


def _householder(matrix: Array) -> tuple[Array, Array]:
    """Compute thin QR in the matrix's own precision, which LAPACK does not have."""
    n, p = matrix.shape
    # Columns lie one after the other in memory.
    work = np.ascontiguousarray(matrix.T)
    vectors = []
    for column in range(p):
        vector = work[column, column:].copy()
        vector[0] += np.copysign(np.sqrt(vector @ vector), vector[0])
        vector /= np.sqrt(vector @ vector)
        _reflect(work[column:, column:], vector)
        vectors.append(vector)
    q = np.eye(p, n, dtype=matrix.dtype)
    for column in reversed(range(p)):
        _reflect(q[column:, column:], vectors[column])
    return q.T, np.triu(work.T[:p])


def _reflect(rows: Array, vector: Array) -> None:
    for row in rows:
        row -= (2 * (row @ vector)) * vector


def _inverse(r: Array) -> Array:
    """Return the inverse of an upper triangular matrix, in its own precision."""
    p = len(r)
    inverse = np.zeros_like(r)
    for row in reversed(range(p)):
        inverse[row, row] = 1 / r[row, row]
        inverse[row, row + 1 :] = -(r[row, row + 1 :] @ inverse[row + 1 :, row + 1 :]) / r[row, row]
    return inverse


def _never(lengths: Array, labels: Sequence[str]) -> str:
    empty = [label for label, length in zip(labels, lengths, strict=True) if length == 0]
    if not empty:
        return ""
    return f"no row has {' or '.join(empty)} (it is 0 in all of them): its effect is unknown"


def _dependences(r: Doubles, lengths: Array, labels: Sequence[str]) -> str:
    """Describe which columns are sums of which, by QR with column pivoting of the triangle of the scaled columns."""
    from scipy.linalg import qr, solve_triangular

    sums = []
    kept = [0]
    # Columns are in the formula's order, so that a later column depends on earlier ones.
    for column in range(1, r.shape[1]):
        basis, triangle, order = qr(r[:, kept], mode="economic", pivoting=True)
        inside = basis.T @ r[:, column]
        if np.linalg.norm(r[:, column] - basis @ inside) > 10 * DEPENDENT:
            kept.append(column)
            continue
        shares = np.empty(len(kept))
        shares[order] = solve_triangular(triangle, inside)
        sums.append(_sum(column, kept, shares * float(lengths[column]) / lengths[kept].astype(np.float64), labels))
    return "; ".join(sums)


def _sum(column: int, others: Sequence[int], shares: Doubles, labels: Sequence[str]) -> str:
    parts = [
        f"{'-' if share < 0 else '+'} {'' if abs(abs(share) - 1) < 1e-6 else f'{abs(share):.4g} '}({labels[other]})"
        for other, share in zip(others, shares, strict=True)
        if abs(share) > 1e-6 * max(abs(shares))
    ]
    return f"({labels[column]}) = {' '.join(parts).removeprefix('+ ')}"
