"""BCa bootstrap interval of a ratio of means, for samples whose logarithms are too far from normal for Student's t.

The interval has bias-corrected and accelerated percentiles (Efron 1987, J. Am. Stat. Assoc. 82:171) of RESAMPLES resamples of
each sample, by scipy. For samples of MANY values each it is the limit of those percentiles, without resampling
(``abc_interval``). The ratio is of geometric means where all values are positive, else of arithmetic means.  The result is
deterministic: the seed is fixed and samples are sorted first, so neither the order of replicates nor which sample is the
reference changes anything. Limit: samples of fewer than LEAST values get no interval, since resampling cannot show tails that
were not drawn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.assumptions import normality
from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import factor, varies

Floats = NDArray[np.float64]

LEAST = 10
RESAMPLES = 9999
LEAST_RESAMPLES = 999
DRAWN = 2**24
"""The most values drawn of a sample: more than 1,677 values get fewer resamples, but at least LEAST_RESAMPLES."""
MANY = 500
"""Samples of at least so many values are not resampled: the two intervals differ by less than resampling's own error."""
SKEWED = 0.001
"""Significance of Shapiro and Wilk's test, small because every cell is tested."""


def far_from_normal(values: Sequence[float]) -> bool:
    """Test normality by Shapiro and Wilk (beyond 5,000 values Anderson and Darling) at SKEWED, for at least LEAST values that
    vary."""
    if len(values) < LEAST or not varies(values):
        return False
    test = normality(np.asarray(values, dtype=np.float64))
    return test is not None and test.p < SKEWED


def resamples(values: Sequence[float], reference: Sequence[float]) -> int:
    """Return the number of resamples of each sample."""
    return min(RESAMPLES, max(LEAST_RESAMPLES, DRAWN // max(len(values), len(reference))))


def drawn(values: Sequence[float], reference: Sequence[float]) -> int:
    """Return the number of values drawn of both samples together; 0 if they are too few for an interval, or need no
    resamples."""
    if not LEAST <= min(len(values), len(reference)) < MANY:
        return 0
    return resamples(values, reference) * (len(values) + len(reference))


def ratio_interval(
    values: Sequence[float], reference: Sequence[float], level: float, seed: int = 0, *, paired: bool = False
) -> Bounds | None:
    """Return the interval of mean(values) / mean(reference); None for fewer than LEAST values, negative ones, or infinite
    bounds. ``paired``: values belong together one by one, and pairs are resampled."""
    if min(len(values), len(reference)) < LEAST or min(min(values), min(reference)) < 0:
        return None
    if not varies(values) and not varies(reference):
        return None
    ordered, ordered_reference = sorted(values), sorted(reference)
    # Both ratios take the samples in one order, so that one is the reciprocal of the other to the last resample.
    turned = (len(ordered_reference), _shape(ordered_reference)) < (len(ordered), _shape(ordered))
    first, second = (reference, values) if turned else (values, reference)
    if paired:
        pairs = sorted(zip(first, second, strict=True))
        samples = ([x for x, _ in pairs], [y for _, y in pairs])
    else:
        samples = (sorted(first), sorted(second))
    if min(len(first), len(second)) >= MANY:
        interval = abc_interval(*samples, level, paired=paired)
    else:
        interval = _interval(*samples, level, seed, paired)
    if not turned or interval is None:
        return interval
    return None if interval.low <= 0 else Bounds(1 / interval.high, 1 / interval.low, level)


def _shape(ordered: Sequence[float]) -> float:
    """Return a number that distinguishes samples and that no change of unit changes."""
    return (ordered[-1] - ordered[0]) / max(ordered[-1], math.ulp(0.0))


def _interval(own: Sequence[float], reference: Sequence[float], level: float, seed: int, paired: bool) -> Bounds | None:
    from scipy.stats import DegenerateDataWarning, bootstrap

    x, y, positive = _on_scale(own, reference)
    if (paired and not varies(np.subtract(x, y).tolist())) or (not positive and not _leaves_ratios(x, y, paired)):
        return None
    rounds = resamples(own, reference)

    def statistic(x: Floats, y: Floats, axis: int = -1) -> Floats:
        own_mean, reference_mean = np.mean(x, axis), np.mean(y, axis)
        estimate: Floats = np.subtract(own_mean, reference_mean) if positive else np.divide(own_mean, reference_mean)
        return estimate

    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        # Resamples of zeros alone have no ratio: the bounds are then NaN, which ``_bounds`` takes for none.
        warnings.simplefilter("ignore", DegenerateDataWarning)
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
    return _bounds(float(interval.low), float(interval.high), level, positive)


def _leaves_ratios(x: Floats, y: Floats, paired: bool) -> bool:
    """Return whether samples without one value have ratios that differ: the jackknife, which BCa rests on, needs them."""
    without_x, without_y = ((np.sum(sample) - sample) / (len(sample) - 1) for sample in (x, y))
    if np.min(without_y) <= 0:
        return False
    ratios = without_x / without_y if paired else np.concatenate([without_x / np.mean(y), np.mean(x) / without_y])
    return bool(np.ptp(ratios) > 1e-12 * np.max(np.abs(ratios)))


def _on_scale(own: Sequence[float], reference: Sequence[float]) -> tuple[Floats, Floats, bool]:
    """Return the values, as logarithms if all are positive, and whether they are."""
    positive = min(own) > 0 and min(reference) > 0
    x, y = (np.asarray(sample, dtype=np.float64) for sample in (own, reference))
    return (np.log(x), np.log(y), True) if positive else (x, y, False)


def _bounds(low: float, high: float, level: float, positive: bool) -> Bounds | None:
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return Bounds(factor(low), factor(high), level) if positive else Bounds(low, high, level)


def abc_interval(own: Sequence[float], reference: Sequence[float], level: float, *, paired: bool = False) -> Bounds | None:
    """Return the nonparametric ABC interval of the same ratio; None for infinite bounds, or for a ratio that does not vary.

    It is the limit of BCa's percentiles as resamples and values grow, by the statistic's derivatives.

    Source: DiCiccio and Efron (1992), Biometrika 79:231, in the form of Efron and Tibshirani (1993), An Introduction to the
    Bootstrap, section 22.6; as R's ``boot::abc.ci``, whose derivatives are numerical.
    """
    from scipy.special import ndtri

    x, y, positive = _on_scale(own, reference)
    means = np.array([x.mean(), y.mean()])
    if positive:
        gradient, curvature = np.array([1.0, -1.0]), np.zeros((2, 2))
    elif means[1] > 0:
        m, n = means
        gradient = np.array([1 / n, -m / n**2])
        curvature = np.array([[0.0, -1 / n**2], [-1 / n**2, 2 * m / n**3]])
    else:
        return None
    deviations = [x - means[0], y - means[1]]
    # Covariances of the means, and what each value adds to the statistic.
    if paired:
        both = np.array(deviations)
        covariance = both @ both.T / len(x) ** 2
        influences = gradient @ both / len(x)
    else:
        covariance = np.diag([float(deviation @ deviation) / len(deviation) ** 2 for deviation in deviations])
        influences = np.concatenate(
            [slope * deviation / len(deviation) for slope, deviation in zip(gradient, deviations, strict=True)]
        )
    variance = float(influences @ influences)
    if not variance > 0:
        return None
    error = math.sqrt(variance)
    acceleration = float(np.sum(influences**3)) / (6 * variance**1.5)
    bias = float(np.sum(curvature * covariance)) / 2
    toward = covariance @ gradient / error
    bend = float(toward @ curvature @ toward) / (2 * error)
    correction = acceleration - (bias / error - bend)
    z = correction + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = (means + reach * toward for reach in z / (1 - acceleration * z) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        low_end, high_end = (float(x - y if positive else np.divide(x, y)) for x, y in (low, high))
    return _bounds(low_end, high_end, level, positive)
