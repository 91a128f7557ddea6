"""Tests whether one of several that should be alike is apart from the others: the prediction interval of one more value.

Of k values from a normal distribution, the next one lies within ``mean ± t(k - 1, 1 - a/2) s sqrt(1 + 1/k)`` with probability 1
- a (Whitmore 1986, The American Statistician 40:141; Hahn and Meeker 1991, Statistical Intervals, sec. 4.8). The differences
among peers are in s: three peers allow the next one 30 times their spread, twenty peers 4 times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from twinbed.statistics.distribution import t_quantile

FEWEST = 3
"""The fewest peers: with fewer hardly anything would be apart from them."""


def half_width(peers: Sequence[float], alpha: float) -> float:
    """Return the half width of the interval around the peers' mean that holds the next one with probability 1 - ``alpha``;
    infinite with fewer than ``FEWEST``."""
    count = len(peers)
    if count < FEWEST:
        return math.inf
    return t_quantile(1 - alpha / 2, count - 1) * stdev(peers) * math.sqrt(1 + 1 / count)


def apart(value: float, peers: Sequence[float], alpha: float, least: float = 0.0) -> float | None:
    """Return how far a value is above its peers' mean, if it is outside their interval and farther than ``least`` away; else
    None."""
    width = half_width(peers, alpha)
    if math.isinf(width):
        return None
    above = value - fmean(peers)
    return above if abs(above) > max(width, least) else None
