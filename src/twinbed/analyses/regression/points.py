"""Rows of the data as the model sees them, for figures: the remarkable ones, and others at even steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from twinbed.analyses.regression.fits import Fitted
from twinbed.analyses.regression.result import Point
from twinbed.statistics.regression.inference import Influence

MOST = 2000
"""A figure cannot show more points apart."""
REMARKABLE = 100


def points(of: Fitted, influence: Influence) -> tuple[Point, ...]:
    """Return the points in the order of the data."""
    n = of.fit.n
    quantiles = np.empty(n)
    # Blom's positions (1958).
    quantiles[np.argsort(of.fit.residuals, kind="stable")] = ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    return tuple(
        Point(
            row=int(of.design.rows[at]) + 1,
            fitted=float(of.fit.fitted[at]),
            residual=float(of.fit.residuals[at]),
            normal_quantile=float(quantiles[at]),
            leverage=float(influence.leverage[at]),
            standardised=_finite(influence.standardised[at]),
            studentised=_finite(influence.studentised[at]),
            cooks_distance=_finite(influence.cooks_distance[at]),
            dffits=_finite(influence.dffits[at]),
            influential=bool(influence.influential[at]),
        )
        for at in _chosen(n, influence).tolist()
    )


def _chosen(n: int, influence: Influence) -> NDArray[np.intp]:
    if n <= MOST:
        return np.arange(n)
    remarkable = [
        np.argsort(np.nan_to_num(np.abs(values), nan=np.inf))[-REMARKABLE:]
        for values in (influence.studentised, influence.cooks_distance)
    ]
    return np.unique(np.concatenate([*remarkable, np.linspace(0, n - 1, MOST - 2 * REMARKABLE).astype(np.intp)]))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
