"""How evenly flows share.

Jain's index (Jain, Chiu and Hawe 1984, DEC-TR-301; Jain 1991, The Art of Computer Systems Performance Analysis, 3.6) of n
shares: (sum x)^2 / (n sum x^2), from 1/n, where one takes all, to 1, where all are equal; it has no unit.
Its interval is that of the index of flows of the same kind, each an independent draw (for the given flows the index is exact).
With C the coefficient of variation the index is 1 / (1 + C^2), so an interval of ln C^2 gives one that stays between 0 and 1:
Bonett's of a variance (2006, Comput. Stat. Data Anal. 50:775), which assumes nothing about the kurtosis. The delta method adds
the contribution of the mean's own error to its squared error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import ndtri

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import variance, varies
from twinbed.statistics.sample import fourth_moment

LEAST = 5
"""An interval needs so many flows: fewer say next to nothing about how flows vary."""


def jain(shares: Sequence[float]) -> float | None:
    """Return Jain's index; None if there is no flow or all shares are 0: then there is nothing to share. Raises ValueError for
    a negative one."""
    if any(share < 0 for share in shares):
        raise ValueError("a flow's share is negative")
    if not shares or max(shares) == 0:
        return None
    # By the largest, so that no square is too large or too small for a float.
    scaled = [share / max(shares) for share in shares]
    return math.fsum(scaled) ** 2 / (len(scaled) * math.fsum(share**2 for share in scaled))


def jain_interval(shares: Sequence[float], level: float) -> Bounds | None:
    """Return the interval; None for fewer than LEAST flows, or if all are equal: nothing then says how unequal others would
    be."""
    n = len(shares)
    if n < LEAST or any(share < 0 for share in shares) or not varies(shares):
        return None
    mean = math.fsum(shares) / n
    scaled = [share / mean for share in shares]
    square = variance(scaled)
    z = float(ndtri((1 + level) / 2))
    wider = n / (n - z)
    kurtosis = n * fourth_moment(scaled) / ((n - 1) * square) ** 2
    skewness = math.fsum((value - 1) ** 3 for value in scaled) / n / square**1.5
    of_mean = 4 * square / n - 4 * skewness * math.sqrt(square) / n
    error = wider * math.sqrt(max(0.0, (kurtosis - (n - 3) / n) / (n - 1) + of_mean))
    low, high = (wider * square * math.exp(sign * z * error) for sign in (-1, 1))
    return Bounds(1 / (1 + high), 1 / (1 + low), level)
