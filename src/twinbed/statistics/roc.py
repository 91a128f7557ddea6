"""How well a score distinguishes two kinds of runs: the ROC curve, and the area under it with its interval.

The area is the chance that a positive scores above a negative, ties counting half.  Its variance is DeLong's (DeLong, DeLong
and Clarke-Pearson 1988, Biometrics 44:837); the interval is made on the logit of the area, so that it stays inside 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from twinbed.statistics.bounds import Bounds

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Operating:
    """The effect of alarming at a score of at least ``threshold``."""

    threshold: float
    false_alarms: float
    """The share of negatives that alarm."""
    detected: float
    """The share of positives that alarm."""


@dataclass(frozen=True, slots=True)
class Area:
    value: float
    error: float
    """Standard error, DeLong's."""
    interval: Bounds | None
    """None for fewer than two of either kind, and where the kinds do not overlap: then DeLong's variance is 0."""


def curve(positives: Sequence[float], negatives: Sequence[float]) -> list[Operating]:
    """Return every threshold that changes something, from the strictest. The first never alarms, the last always does."""
    high, low = np.sort(positives), np.sort(negatives)
    thresholds = [math.inf, *np.unique(np.concatenate([high, low]))[::-1].tolist()]
    return [
        Operating(
            threshold,
            1 - float(np.searchsorted(low, threshold)) / len(low),
            1 - float(np.searchsorted(high, threshold)) / len(high),
        )
        for threshold in thresholds
    ]


def area(positives: Sequence[float], negatives: Sequence[float], level: float = 0.95) -> Area:
    """Return the area, for at least one score of each kind."""
    high, low = np.asarray(positives, dtype=np.float64), np.asarray(negatives, dtype=np.float64)
    of_high, of_low = _placements(high, low), 1 - _placements(low, high)
    value = float(of_high.mean())
    if min(len(high), len(low)) < 2:
        return Area(value, math.nan, None)
    error = math.sqrt(float(of_high.var(ddof=1)) / len(high) + float(of_low.var(ddof=1)) / len(low))
    if error == 0 or not 0 < value < 1:
        return Area(value, error, None)
    half = float(ndtri((1 + level) / 2)) * error / (value * (1 - value))
    logit = math.log(value / (1 - value))
    low_end, high_end = (1 / (1 + math.exp(-(logit + side * half))) for side in (-1, 1))
    return Area(value, error, Bounds(low_end, high_end, level))


def _placements(values: Floats, others: Floats) -> Floats:
    """Return the share of others below each value; ties count half."""
    ordered = np.sort(others)
    below, up_to = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    shares: Floats = (below + up_to) / (2 * len(ordered))
    return shares
