"""Monotone regression: the monotone sequence nearest to the values by weighted least squares, by scipy.

Values are in the order of the variable they depend on, and ties in it are already averaged.
"""

from __future__ import annotations

from collections.abc import Sequence


def isotonic(values: Sequence[float], weights: Sequence[float] | None = None, *, increasing: bool = True) -> list[float]:
    """Return as many fitted values. Weights, by default 1, must be above 0."""
    from scipy.optimize import isotonic_regression

    fitted: list[float] = isotonic_regression(values, weights=weights, increasing=increasing).x.tolist()
    return fitted
