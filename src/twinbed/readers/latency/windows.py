"""Delay variation window by window: jitter as owping has it, the 95th percentile less the median."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from twinbed.readers.latency.files import LEAST
from twinbed.readers.latency.probes import Integers, Numbers


@dataclass(frozen=True, slots=True)
class Windows:
    """One row a window in which at least one probe arrived; the quantiles' rows of those with too few are NaN."""

    index: Integers
    arrived: Integers
    median_s: Numbers
    p95_s: Numbers

    @property
    def jitter_s(self) -> Numbers:
        jitter: Numbers = self.p95_s - self.median_s
        return jitter


def windows(at_s: Numbers, delay_s: Numbers, window_s: float) -> Windows:
    """By the time at which probes passed the client. Delays may hold any constant; NaN is what did not arrive."""
    there = ~(np.isnan(at_s) | np.isnan(delay_s))
    number = np.floor(at_s[there] / window_s).astype(np.int64)
    order = np.lexsort((delay_s[there], number))
    ordered = delay_s[there][order]
    index, first, arrived = np.unique(number[order], return_index=True, return_counts=True)
    return Windows(
        index=index,
        arrived=arrived,
        median_s=_quantile(ordered, first, arrived, 0.5),
        p95_s=_quantile(ordered, first, arrived, 0.95),
    )


def _quantile(ordered: Numbers, first: npt.NDArray[np.intp], count: npt.NDArray[np.intp], share: float) -> Numbers:
    """Of each run of sorted values: interpolated between order statistics (type 7 of Hyndman and Fan 1996)."""
    if not len(count):
        return np.empty(0)
    position = (count - 1) * share
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, count - 1)
    low, high = ordered[first + below], ordered[first + above]
    quantiles: Numbers = np.where(count >= LEAST, low + (position - below) * (high - low), np.nan)
    return quantiles
