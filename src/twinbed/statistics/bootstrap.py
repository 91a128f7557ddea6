"""BCa bootstrap interval of a ratio of means, for samples whose logarithms are too far from normal for Student's t.

The interval has bias-corrected and accelerated percentiles (Efron 1987, J. Am. Stat. Assoc. 82:171) of RESAMPLES resamples of
each sample, of large ones fewer, by scipy. The ratio is of geometric means where all values are positive, else of arithmetic
means.  The result is deterministic: the seed is fixed and samples are sorted first, so neither the order of replicates nor
which sample is the reference changes anything. Limit: samples of fewer than LEAST values get no interval, since resampling
cannot show tails that were not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.assumptions import normality
from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import varies

Floats = NDArray[np.float64]

LEAST = 10
RESAMPLES = 9999
LEAST_RESAMPLES = 999
DRAWN = 2**24
"""Values that are drawn of a sample, at most, but for LEAST_RESAMPLES: of more than 1,677 values there are fewer resamples."""
SKEWED = 0.001
"""Significance of Shapiro and Wilk's test, small because every cell is tested."""


def far_from_normal(values: Sequence[float]) -> bool:
    """Shapiro and Wilk's test (beyond 5,000 values Anderson and Darling's) at SKEWED, for at least LEAST values that vary."""
    if len(values) < LEAST or not varies(values):
        return False
    test = normality(np.asarray(values, dtype=np.float64))
    return test is not None and test.p < SKEWED


def resamples(values: Sequence[float], reference: Sequence[float]) -> int:
    """How many are drawn of each sample."""
    return min(RESAMPLES, max(LEAST_RESAMPLES, DRAWN // max(len(values), len(reference))))


def drawn(values: Sequence[float], reference: Sequence[float]) -> int:
    """How many values are drawn of both samples together; 0 where they are too few for an interval."""
    few = min(len(values), len(reference)) < LEAST
    return 0 if few else resamples(values, reference) * (len(values) + len(reference))


def ratio_interval(
    values: Sequence[float], reference: Sequence[float], level: float, seed: int = 0, *, paired: bool = False
) -> Bounds | None:
    """The interval of mean(values) / mean(reference); None for fewer than LEAST values, negative ones, or infinite bounds.
    ``paired``: values belong together one by one, and pairs are resampled."""
    if min(len(values), len(reference)) < LEAST or min(min(values), min(reference)) < 0:
        return None
    if not varies(values) and not varies(reference):
        return None
    one, two = sorted(values), sorted(reference)
    # Both ratios take the samples in one order, so that one is the reciprocal of the other to the last resample.
    turned = (len(two), _shape(two)) < (len(one), _shape(one))
    first, second = (reference, values) if turned else (values, reference)
    if paired:
        pairs = sorted(zip(first, second, strict=True))
        interval = _interval([x for x, _ in pairs], [y for _, y in pairs], level, seed, paired)
    else:
        interval = _interval(sorted(first), sorted(second), level, seed, paired)
    if not turned or interval is None:
        return interval
    return None if interval.low <= 0 else Bounds(1 / interval.high, 1 / interval.low, level)


def _shape(ordered: Sequence[float]) -> float:
    """A number that distinguishes samples and that no change of unit changes."""
    return (ordered[-1] - ordered[0]) / max(ordered[-1], math.ulp(0.0))


def _interval(one: Sequence[float], two: Sequence[float], level: float, seed: int, paired: bool) -> Bounds | None:
    from scipy.stats import bootstrap

    positive = min(one) > 0 and min(two) > 0
    x, y = (np.log(sample) if positive else np.asarray(sample, dtype=float) for sample in (one, two))
    rounds = resamples(one, two)

    def statistic(x: Floats, y: Floats, axis: int = -1) -> Floats:
        one, two = np.mean(x, axis), np.mean(y, axis)
        estimate: Floats = np.subtract(one, two) if positive else np.divide(one, two)
        return estimate

    with np.errstate(divide="ignore", invalid="ignore"):
        interval = bootstrap(
            (x, y),
            statistic,
            method="BCa",
            paired=paired,
            vectorized=True,
            n_resamples=rounds,
            batch=rounds,  # of the jackknife, whose samples without one value are as many as there are values
            confidence_level=level,
            rng=np.random.default_rng(seed),
        ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return Bounds(math.exp(low), math.exp(high), level) if positive else Bounds(low, high, level)
