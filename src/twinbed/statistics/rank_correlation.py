"""Rank correlations, with ties: Spearman's rho and Kendall's tau-b, and tests of no correlation.

P-values are two-sided.  Spearman's is over all orders for at most EXACT pairs, tied or not, else by Student's t (Kendall and
Stuart, 31.19), as scipy's is for few pairs too.  Kendall's is scipy's: exact without ties for at most EXACT_KENDALL pairs, else
normal with the variance corrected for ties (Kendall 1970, Rank Correlation Methods, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

Floats = NDArray[np.float64]
EXACT, EXACT_KENDALL = 8, 49
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Correlation:
    value: float
    """From -1 to 1."""
    p_value: float


def midranks(values: Sequence[float]) -> Floats:
    """Return ranks from 1; ties share the mean of their ranks."""
    sample = np.asarray(values, dtype=np.float64)
    ordered = np.sort(sample)
    ranks: Floats = (np.searchsorted(ordered, sample, "left") + np.searchsorted(ordered, sample, "right") + 1) / 2
    return ranks


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """Return rho; None for fewer than three pairs, and where either does not vary."""
    one, two = midranks(x) - (len(x) + 1) / 2, midranks(y) - (len(y) + 1) / 2
    scale = math.sqrt(float(one @ one) * float(two @ two))
    if len(x) < 3 or scale == 0:
        return None
    rho = max(-1.0, min(1.0, float(one @ two) / scale))
    if len(x) <= EXACT:
        all_of = one[_orders(len(x))] @ two / scale
        return Correlation(rho, float(np.mean(np.abs(all_of) >= abs(rho) - ROUNDING)))
    if abs(rho) == 1:
        return Correlation(rho, 0.0)
    t = abs(rho) * math.sqrt((len(x) - 2) / (1 - rho * rho))
    return Correlation(rho, min(1.0, 2 * float(stdtr(len(x) - 2, -t))))


@cache
def _orders(n: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(n))), dtype=np.intp)


def kendall(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """Return tau-b; None for fewer than three pairs, and where either does not vary."""
    n = len(x)
    if n < 3 or min(np.ptp(x), np.ptp(y)) == 0:
        return None
    from scipy.stats import kendalltau

    exact = n <= EXACT_KENDALL and len(set(x)) == len(set(y)) == n
    found = kendalltau(x, y, method="exact" if exact else "asymptotic")
    return Correlation(float(found.statistic), float(found.pvalue))
