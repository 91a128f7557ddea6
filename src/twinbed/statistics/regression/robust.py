"""Robust M-estimation (Huber 1964, 1981), which large residuals do not dominate: iterated weighted least squares.

Weights are Huber's min(1, k/|u|) with k = 1.345, or Tukey's biweight (1 - (u/c)^2)^2 within c = 4.685, both 95 % efficient on
normal residuals.  u is the residual over the scale.  Every step computes the scale again: the median of |residuals| / 0.6745.
Tukey's begins from Huber's solution, since its own is not unique.  Standard errors are those of Huber 1981, chapter 7, as
MASS::rlm has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.least_squares import Doubles, Fit

HUBER_K = 1.345
TUKEY_C = 4.685
_CLOSE = 1e-8
_MOST_STEPS = 200
_SINGULAR = 1e12


class Weighting(StrEnum):
    HUBER = "huber"
    TUKEY = "tukey"


@dataclass(frozen=True, slots=True)
class RobustFit:
    coefficients: Doubles
    covariance: Doubles
    weights: Doubles
    """The weight of each row, from 0 (ignored) to 1."""
    scale: float


def robust(fit: Fit, response: Doubles, weighting: Weighting = Weighting.HUBER) -> RobustFit:
    """Fit, starting from a least squares fit of ``response``. Raises RegressionError if it does not settle, or most residuals
    are 0."""
    inside, residuals, scale = _settled(fit, response, fit.residuals, Weighting.HUBER)
    if weighting is Weighting.TUKEY:
        inside, residuals, scale = _settled(fit, response, residuals, Weighting.TUKEY)
    scaled: Doubles = residuals / scale
    weights = _weights(scaled, weighting)
    slopes = _slopes(scaled, weighting)
    mean = float(slopes.mean())
    kappa = 1 + fit.p * float(slopes.var(ddof=1)) / (fit.n * mean**2)
    variance = float(np.sum((residuals * weights) ** 2)) / fit.degrees_of_freedom * (kappa / mean) ** 2
    return RobustFit(fit.root @ inside, variance * (fit.root @ fit.root.T), weights, scale)


def _settled(fit: Fit, response: Doubles, residuals: Doubles, weighting: Weighting) -> tuple[Doubles, Doubles, float]:
    """Return coefficients on the basis ``q``, residuals and scale of the settled fit."""
    for _ in range(_MOST_STEPS):
        scale = float(np.median(np.abs(residuals))) / 0.6745
        if scale <= 1e-12 * float(np.max(np.abs(response))):
            raise RegressionError(
                "at least half of the rows are fitted exactly: a robust fit has no scale", "use least squares"
            )
        weighted = fit.q * _weights(residuals / scale, weighting)[:, None]
        inner = weighted.T @ fit.q
        if np.linalg.cond(inner) > _SINGULAR:
            raise RegressionError("all rows that determine a coefficient are ignored as outliers", "use --robust huber")
        inside = np.asarray(np.linalg.solve(inner, weighted.T @ response), dtype=np.float64)
        before, residuals = residuals, response - fit.q @ inside
        if np.linalg.norm(before - residuals) <= _CLOSE * np.linalg.norm(before):
            return inside, residuals, float(np.median(np.abs(residuals))) / 0.6745
    raise RegressionError(
        f"the robust fit does not settle in {_MOST_STEPS} steps", "look at the residuals: they may have two modes"
    )


def _weights(scaled: Doubles, weighting: Weighting) -> Doubles:
    size = np.abs(scaled)
    if weighting is Weighting.HUBER:
        return HUBER_K / np.maximum(size, HUBER_K)
    return np.where(size < TUKEY_C, (1 - (scaled / TUKEY_C) ** 2) ** 2, 0.0)


def _slopes(scaled: Doubles, weighting: Weighting) -> Doubles:
    """Return the derivative of psi(u) = u weight(u)."""
    if weighting is Weighting.HUBER:
        return (np.abs(scaled) <= HUBER_K).astype(np.float64)
    share = (scaled / TUKEY_C) ** 2
    return np.where(share < 1, (1 - share) * (1 - 5 * share), 0.0)
