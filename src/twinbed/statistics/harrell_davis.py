"""Quantiles by Harrell and Davis (1982, Biometrika 69:635): weighted means of all order statistics.

The weight of the i-th of n values is the probability of ((i-1)/n, i/n) under a beta distribution with parameters (n+1)p and
(n+1)(1-p).  The weights of its outermost NOTHING at each end are not computed, so that a quantile of millions of values takes
those of a few thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

Floats = NDArray[np.float64]

NOTHING = 1e-18


def harrell_davis(ordered: Floats, shares: Sequence[float]) -> list[float]:
    """Return the quantiles of at least one value, given in increasing order; ``shares`` between 0 and 1.

    >>> harrell_davis(np.arange(1.0, 10.0), [0.5])
    [5.0]
    """
    return [_one(ordered, share) for share in shares]


def parameters(n: int, share: float) -> tuple[float, float]:
    """Return the parameters of the beta distribution whose probabilities are the weights of n values."""
    return (n + 1) * share, (n + 1) * (1 - share)


def _one(ordered: Floats, share: float) -> float:
    n = len(ordered)
    a, b = parameters(n, share)
    first, last = math.floor(n * betaincinv(a, b, NOTHING)), math.ceil(n * (1 - betaincinv(b, a, NOTHING)))
    weights = np.diff(betainc(a, b, np.arange(first, last + 1) / n))
    return float(weights @ ordered[first:last] / weights.sum())
