"""Histograms of times that hold any number of values, with a relative error of at most 1/1024 of each.

Buckets are those of HdrHistogram with three significant decimal digits (Tene 2012, hdrhistogram.org): whole nanoseconds up to
2,047 have one each, and every octave above that has 1,024 of equal width.  From 1 microsecond to 100 seconds that is 27,000,
of which the times of a run fill a few thousand, so that a thousand million requests take no more room than a million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from twinbed.statistics.quantile import beta_parameters

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 10
HALF = 1 << BITS
"""Buckets of an octave."""
NANOSECONDS = 1e9


def bucket(nanoseconds: Integers) -> Integers:
    """Return the place of each time, of at least 0, among all buckets."""
    # The exponent of a double is that of the integer: times below 2^53 ns, 104 days, are exact.
    octave = np.maximum(np.frexp(nanoseconds.astype(np.float64))[1] - BITS - 1, 0).astype(np.int64)
    places: Integers = (octave << BITS) + (nanoseconds >> octave)
    return places


def lowest(buckets: Integers) -> Integers:
    """Return the least nanoseconds of each bucket; the next bucket's are where it ends."""
    octave = np.maximum((buckets >> BITS) - 1, 0)
    least: Integers = (buckets - (octave << BITS)) << octave
    return least


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of times by bucket: only filled buckets, in increasing order."""

    buckets: Integers
    counts: Integers

    @classmethod
    def of(cls, seconds: Floats) -> Histogram:
        """Count times of at least 0."""
        # There are few buckets, so that counting is several times as fast as sorting.
        return cls._from_counts(np.bincount(bucket(np.rint(seconds * NANOSECONDS).astype(np.int64))))

    @classmethod
    def _from_counts(cls, counts: Integers) -> Histogram:
        """Keep the filled buckets of a count for every bucket from the first on."""
        filled = np.flatnonzero(counts)
        return cls(filled, counts[filled])

    @classmethod
    def together(cls, parts: Sequence[Histogram]) -> Histogram:
        counts = np.zeros(max((int(part.buckets.max(initial=-1)) for part in parts), default=-1) + 1, np.int64)
        for part in parts:
            np.add.at(counts, part.buckets, part.counts)  # a bucket may occur more than once
        return cls._from_counts(counts)

    def __len__(self) -> int:
        """Return the number of values."""
        return int(self.counts.sum())

    @property
    def seconds(self) -> Floats:
        """Return the middle of each bucket."""
        return (lowest(self.buckets) + lowest(self.buckets + 1) - 1) / 2 / NANOSECONDS

    def quantiles(self, shares: Sequence[float]) -> list[float]:
        """Return Harrell and Davis's quantiles of values at the middles of their buckets: a bucket has the weight of all its
        ranks."""
        if not shares:
            return []
        n, middles = len(self), self.seconds
        until = np.concatenate([[0], np.cumsum(self.counts)]) / n
        return [float(np.diff(betainc(*beta_parameters(n, share), until)) @ middles) for share in shares]
