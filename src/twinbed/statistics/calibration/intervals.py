"""Intervals of mixtures of Student's t, factors of conformal intervals, and the convex hull inside which there is an
interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]

CLOSE = 1e-9
ROUNDS = 100
PRECISION = 1e-12
"""The precision of a quantile, as a share of the half-width of an interval."""


def least_groups(level: float) -> int:
    """Return how many randomly drawn groups a conformal interval needs: 19 for 95 %, 9 for 90 %."""
    return math.ceil(round(level / (1 - level), 9))


def conformal_factor(scores: Sequence[float], level: float) -> float | None:
    """Return the ceil((n + 1) level)-th smallest score of n; None for fewer scores."""
    rank = math.ceil(round((len(scores) + 1) * level, 9))
    return sorted(scores)[rank - 1] if rank <= len(scores) else None


def in_hull(points: Doubles, asked: Doubles) -> Flags:
    """Return for each of ``asked`` whether it is in the convex hull of ``points`` or on its border."""
    from scipy.optimize import linprog

    inside_hull = np.zeros(len(asked), dtype=bool)
    low, high = points.min(axis=0), points.max(axis=0)
    box: Flags = np.all((asked >= low - CLOSE) & (asked <= high + CLOSE), axis=1)
    varied = high - low > CLOSE
    if varied.sum() <= 1:
        return box
    corners = np.unique(points[:, varied], axis=0)
    if len(corners) == np.prod([len(np.unique(corners[:, column])) for column in range(corners.shape[1])]):
        return box  # A full grid fills its box.
    equal = np.vstack([corners.T, np.ones(len(corners))])
    for row in np.flatnonzero(box):
        side = np.append(asked[row, varied], 1.0)
        inside_hull[row] = linprog(np.zeros(len(corners)), A_eq=equal, b_eq=side, bounds=(0, None), method="highs").status == 0
    return inside_hull


def quantiles(mean: Doubles, variance: Doubles, weights: Doubles, df: Doubles, level: float) -> tuple[Doubles, Doubles]:
    """Return the interval of a mixture of Student's t: (shapes, places) each."""
    from scipy.special import gammaln, stdtr, stdtrit

    deviation = np.sqrt(np.maximum(variance, 1e-300))
    spread = stdtrit(df, (1 + level) / 2) * deviation
    height = np.exp(gammaln((df + 1) / 2) - gammaln(df / 2)) / (np.sqrt(np.pi * df) * deviation)
    close = PRECISION * spread.max(axis=0)
    bounds = []
    for chance, of_shapes in (((1 - level) / 2, mean - spread), ((1 + level) / 2, mean + spread)):
        below, above, at = of_shapes.min(axis=0), of_shapes.max(axis=0), weights @ of_shapes
        for _ in range(ROUNDS):
            off = (at - mean) / deviation
            beyond = weights @ stdtr(df, off) - chance
            below, above = np.where(beyond < 0, at, below), np.where(beyond < 0, above, at)
            # Newton's step, or half of what is left where that leads out of it, or a narrow peak makes it short.
            with np.errstate(all="ignore"):
                step = at - beyond / (weights @ (height * (1 + off**2 / df) ** (-(df + 1) / 2)))
            is_good = (below < step) & (step < above) & ((np.abs(step - at) > close) | (np.abs(beyond) < CLOSE))
            before, at = at, np.where(is_good, step, (below + above) / 2)
            if np.all(np.abs(at - before) <= close):
                break
        bounds.append(at)
    return bounds[0], bounds[1]
