"""A linear mixed model with one random intercept, such as of a block or a cluster of machines, by REML.

y = X b + u_group + e with variances v_u and v_e.  The restricted likelihood is profiled over theta = v_u / v_e.  With one
random intercept, V^-1 = I - theta/(1 + n_i theta) J in each group: X'V^-1X needs sums of groups only (Laird and Ware 1982;
Pinheiro and Bates 2000, chapter 2).  Columns are taken on the orthonormal basis of the least squares fit.

Degrees of freedom are Pinheiro and Bates's (section 2.4.2): columns that vary within groups have the degrees within, the others
those between.  The hypothesis v_u = 0 lies on the boundary of the parameter space: p is half that of chi-square(1) (Self and
Liang 1987).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.inference import group_sums
from twinbed.statistics.regression.least_squares import Doubles, Fit

_WIDEST = (-18.0, 14.0)
"""Natural logarithms of the thetas to try."""


@dataclass(frozen=True, slots=True)
class MixedFit:
    coefficients: Doubles
    covariance: Doubles
    degrees_of_freedom: Doubles
    """The degrees of freedom of each coefficient."""
    group_variance: float
    residual_variance: float
    groups: int
    log_likelihood: float
    """The restricted log-likelihood."""
    p_value: float
    """The p-value of no variance between groups."""

    @property
    def intraclass_correlation(self) -> float:
        """Return the share of the variance that is between groups."""
        return self.group_variance / (self.group_variance + self.residual_variance)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums that the likelihood needs, of all rows and of groups, on the basis q."""

    n: int
    inner: Doubles
    response: Doubles
    square: float
    sizes: Doubles
    group_q: Doubles
    group_y: Doubles
    log_root: float

    def solved(self, theta: float) -> tuple[Doubles, Doubles, float, float]:
        """Return coefficients on q, q'V^-1q, the residual sum of squares over V, restricted log-likelihood."""
        shrink = theta / (1 + self.sizes * theta)
        inner = self.inner - (self.group_q * shrink[:, None]).T @ self.group_q
        right = self.response - self.group_q.T @ (shrink * self.group_y)
        coefficients = np.linalg.solve(inner, right)
        left = self.square - float(shrink @ self.group_y**2) - float(right @ coefficients)
        # Where groups explain the response exactly, the rest is rounding.
        left = max(left, self.square * float(np.finfo(np.float64).eps) ** 2)
        degrees = self.n - len(coefficients)
        determinants = float(np.log1p(self.sizes * theta).sum()) + float(np.linalg.slogdet(inner)[1]) + self.log_root
        likelihood = -0.5 * (degrees * (float(np.log(2 * np.pi * left / degrees)) + 1) + determinants)
        return np.asarray(coefficients, dtype=np.float64), inner, left, likelihood


def mixed(fit: Fit, matrix: Doubles, groups: NDArray[np.intp]) -> MixedFit:
    """Fit the model; ``groups`` are codes from 0. Raises RegressionError for one group only, or a group for every row."""
    from scipy.optimize import minimize_scalar

    if fit.exact:
        raise RegressionError("the model fits every row exactly: nothing remains for a random effect", "leave it out")
    sizes = np.bincount(groups).astype(np.float64)
    if len(sizes) < 2 or sizes.max() == 1:
        what = "one group only" if len(sizes) < 2 else "a group for every row"
        raise RegressionError(
            f"a random effect cannot be estimated from {what}", "choose a column with several rows in each of several levels"
        )
    # Values are about the least squares fit, so that no digits are lost to the response's size.
    left = fit.residuals
    sums = _Sums(
        n=fit.n,
        inner=np.eye(fit.p),
        response=fit.q.T @ left,
        square=float(left @ left),
        sizes=sizes,
        group_q=group_sums(fit.q, groups),
        group_y=group_sums(left[:, None], groups)[:, 0],
        log_root=-2 * float(np.linalg.slogdet(fit.root)[1]),
    )
    optimum = minimize_scalar(
        lambda at: -sums.solved(np.exp(at))[3], bounds=_WIDEST, method="bounded", options={"xatol": 1e-10}
    )
    none = sums.solved(0.0)[3]
    theta = float(np.exp(optimum.x)) if -optimum.fun > none else 0.0
    change, inner, residual, likelihood = sums.solved(theta)
    variance = residual / (fit.n - fit.p)
    ratio = max(0.0, 2 * (likelihood - none))
    return MixedFit(
        coefficients=fit.coefficients + fit.root @ change,
        covariance=variance * (fit.root @ np.linalg.solve(inner, fit.root.T)),
        degrees_of_freedom=_degrees_of_freedom(fit, matrix, groups, len(sizes)),
        group_variance=theta * variance,
        residual_variance=variance,
        groups=len(sizes),
        log_likelihood=likelihood,
        p_value=float(chdtrc(1, ratio)) / 2 if ratio > 0 else 1.0,
    )


def _degrees_of_freedom(fit: Fit, matrix: Doubles, groups: NDArray[np.intp], count: int) -> Doubles:
    """Return the degrees of freedom of each coefficient; the constant counts as varying within groups, as in nlme."""
    first = np.empty(count, dtype=np.intp)
    first[groups[::-1]] = np.arange(fit.n)[::-1]
    outer = np.all(matrix == matrix[first][groups], axis=0)
    constant = np.zeros(fit.p, dtype=bool)
    constant[0] = fit.constant
    within = fit.n - count - int(np.sum(~outer))
    between = count - int(np.sum(outer & ~constant)) - int(fit.constant)
    return np.where(outer & ~constant, between, within).astype(np.float64)
