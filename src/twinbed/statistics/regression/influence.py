"""Influence of each row on the fit: leverage, studentised residuals, Cook's distance and DFFITS, all from the thin QR.
leverage, studentised residuals, Cook's distance and DFFITS, all from the thin QR.

Let h be the leverage, e the residual, s^2 the variance.  Internally studentised r = e / (s sqrt(1-h)); externally t = r
sqrt((n-p-1) / (n-p-r^2)).  Cook's D = r^2 h / (p (1-h)); DFFITS = t sqrt(h / (1-h)) (Cook 1977; Belsley, Kuh and Welsch 1980).
A row counts as influential by R's rules: h > 3 p/n, |DFFITS| > 3 sqrt(p/(n-p)), or D above the median of F(p, n-p). The largest
|t| is tested against Student's t of n - p - 1 degrees of freedom with Bonferroni's correction over all rows.

Limit: a row that alone determines a coefficient (h = 1) always fits perfectly: it has no studentised residual (nan here).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtri, stdtr

from twinbed.statistics.regression.inference import SATURATED
from twinbed.statistics.regression.least_squares import Doubles, Fit


@dataclass(frozen=True, slots=True)
class Influence:
    """Measures of every row (n). ``alone`` marks rows that alone determine a coefficient; all but leverage is nan there."""

    leverage: Doubles
    standardised: Doubles
    """Internally studentised residuals."""
    studentised: Doubles
    """Externally studentised residuals."""
    cooks_distance: Doubles
    dffits: Doubles
    alone: NDArray[np.bool_]
    influential: NDArray[np.bool_]
    outlier: int | None
    """The row with the largest externally studentised residual; None where it cannot be determined."""
    outlier_p: float | None
    """Its p-value with Bonferroni's correction."""


def influence(fit: Fit) -> Influence:
    """Return the measures of every row of a fit."""
    n, p = fit.n, fit.p
    leverage = fit.leverage
    alone = leverage > SATURATED
    with np.errstate(divide="ignore", invalid="ignore"):
        free = np.where(alone, np.nan, 1 - leverage)
        standardised = fit.residuals / np.sqrt(fit.variance * free)
        left = n - p - standardised**2
        studentised = standardised * np.sqrt((n - p - 1) / np.maximum(left, 0))
        cooks_distance = standardised**2 * leverage / (free * p)
        dffits = studentised * np.sqrt(leverage / free)
    influential = leverage > 3 * p / n
    influential |= np.abs(dffits) > 3 * np.sqrt(p / (n - p))
    influential |= cooks_distance > fdtri(p, n - p, 0.5)
    outlier, outlier_p = None, None
    if n - p > 1 and np.any(np.isfinite(studentised)):
        outlier = int(np.nanargmax(np.where(np.isnan(studentised), np.nan, np.abs(studentised))))
        largest = abs(float(studentised[outlier]))
        outlier_p = min(1.0, 2 * n * float(stdtr(n - p - 1, -largest)))
    return Influence(leverage, standardised, studentised, cooks_distance, dffits, alone, influential, outlier, outlier_p)
