"""Non-linear least squares: a curve through points, its parameters with standard errors.

The fit is by Levenberg and Marquardt's method (scipy's MINPACK) with derivatives by complex steps, exact to the last digits
(Squire and Trapp 1998), then by Gauss-Newton steps while they improve it.  Standard errors are those of the curve linearised at
the solution.

Limits: a model must be analytic, and take complex parameters: no abs, no comparisons. The result is the nearest minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Values = Doubles | NDArray[np.complex128]
Model = Callable[[Values, Doubles], Values]
"""(parameters, x) -> values; x may have several columns."""
_STEP = 1e-30
_POLISHING = 50


class NoFitError(ValueError):
    """The curve cannot be fitted; the text says what is wrong, and what to do."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A fitted curve: parameters with their covariance, the residual sum of squares, and its degrees of freedom."""

    parameters: Doubles
    covariance: Doubles
    """(parameters, parameters), of their estimates."""
    residual_sum: float
    degrees_of_freedom: int

    @property
    def standard_errors(self) -> Doubles:
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the residuals."""
        return float(np.sqrt(self.residual_sum / self.degrees_of_freedom))


def fit(model: Model, x: Doubles, y: Doubles, start: Doubles) -> Curve:
    """Fit from ``start``. Raises NoFitError for too few points, or if the method does not settle."""
    from scipy.optimize import least_squares

    n, p = len(y), len(start)
    if n <= p:
        raise NoFitError(f"{n} points do not determine {p} parameters and their errors: give at least {p + 1}")

    def residuals(parameters: Doubles) -> Doubles:
        return np.asarray(y - model(parameters, x), dtype=np.float64)

    def slopes(parameters: Doubles) -> Doubles:
        steps = parameters + 1j * _STEP * np.eye(p)
        return np.stack([-np.imag(model(step, x)) / _STEP for step in steps], axis=1)

    tightest = float(np.finfo(float).eps)
    with np.errstate(all="ignore"):
        try:
            solution = least_squares(
                residuals,
                start,
                slopes,
                method="lm",
                x_scale="jac",
                ftol=tightest,
                xtol=tightest,
                gtol=tightest,
                max_nfev=20_000,
            )
        except ValueError as error:
            raise NoFitError(f"the curve is not finite near this start ({error}): start closer to the solution") from error
        parameters = _polished(residuals, slopes, solution.x)
        jacobian = slopes(parameters)
    lengths = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
    # A parameter also tells nothing if twice its value does not move a point by its last digit.
    idle = (parameters != 0) & (lengths * np.abs(parameters) <= tightest * np.linalg.norm(y))
    if not np.all(np.isfinite(jacobian)) or np.any(lengths == 0) or np.any(idle):
        raise NoFitError("a parameter has no effect at the solution: start elsewhere, or leave it out")
    r = np.linalg.qr(jacobian / lengths, mode="r")
    if np.linalg.cond(r) > 1e12:
        raise NoFitError("the points do not separate the parameters: add points where the curve bends")
    left = float(np.sum(residuals(parameters) ** 2))
    root = np.linalg.inv(r) / lengths[:, None]
    return Curve(parameters, root @ root.T * left / (n - p), left, n - p)


def _polished(residuals: Callable[[Doubles], Doubles], slopes: Callable[[Doubles], Doubles], parameters: Doubles) -> Doubles:
    """Take Gauss-Newton steps as long as they become shorter; return the parameters before the shortest step."""
    best, shortest = parameters, np.inf
    for _ in range(_POLISHING):
        jacobian = slopes(parameters)
        lengths = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
        if not np.all(np.isfinite(jacobian)) or np.any(lengths == 0):
            return best
        step = -np.linalg.lstsq(jacobian / lengths, residuals(parameters), rcond=None)[0]
        size = float(np.linalg.norm(step))
        if size < shortest:
            best, shortest = parameters, size
        elif size > 10 * shortest:
            return best
        parameters = parameters + step / lengths
    return best
