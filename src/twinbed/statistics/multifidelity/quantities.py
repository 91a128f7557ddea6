"""Variances, shares and quantiles of the expensive model, each estimated as the mean of a property that every draw has.

The share of draws below a bound is the mean of an indicator. A cheap model's value first goes through a straight line fitted to
the shared draws; its indicator asks whether the result is below the bound (control variates for probabilities: Hesterberg and
Nelson 1998, Management Science 44:1295).  A quantile is where the share crosses p, its interval all values whose share may be p
(Woodruff 1952, J. Am. Stat. Assoc. 47:646).  A variance is the mean square around the mean, a cheap model's around its own; its
interval is made on the logarithm.

Limits: a share needs LEAST_SIDE draws of the expensive model on either side, else its own Clopper-Pearson interval stands
(1934, Biometrika 26:404).  The interval of a variance is short of its level where values have heavy tails
(benchmarks/multifidelity).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.multifidelity.allocation import Matrix
from twinbed.statistics.multifidelity.decision import Decision, decide
from twinbed.statistics.multifidelity.estimate import LEAST_SHARED

LEAST_SIDE = 5
"""From so many draws on either side of a bound, a share is estimated as other means are."""
MOST_CANDIDATES = 400
"""Values that may be a quantile."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """The estimate of one quantity."""

    value: float
    low: float | None
    """None if no value is shown to be too low."""
    high: float | None
    models: tuple[int, ...]
    """Cheap models that were mixed in."""
    plain: Bounds | None
    """The interval from the expensive model's draws alone, if there is one."""
    refusal: str
    expected: float | None
    """The expected variance over that of the expensive model's draws alone."""
    squared_error: tuple[float, float] | None = None
    """Only for a mean: the squared error of the estimate, and of the expensive model's draws alone."""


def mean(values: Matrix, level: float, names: Sequence[str]) -> Quantity:
    """Estimate the mean of model 0, the expensive one; ``values`` has shape (draws, models), NaN where a model was not run."""
    return _as_quantity(decide(values, level, names))


def _as_quantity(decision: Decision) -> Quantity:
    low, high, _ = decision.estimate.interval
    models = decision.estimate.models
    errors = decision.estimate.standard_error**2, decision.plain.standard_error**2
    value, alone = decision.estimate.value, decision.plain.interval
    return Quantity(value, low, high, models, alone, decision.refusal, decision.expected, errors if errors[1] else None)


def variance(values: Matrix, level: float, names: Sequence[str]) -> Quantity:
    """Estimate the variance of the expensive model's values."""
    centre = decide(values, level, names).estimate
    squares = (values - np.nanmean(values, axis=0)) ** 2
    # The sum of squares around any centre is more than that around the sample's own.
    n = int((~np.isnan(values[:, 0])).sum())
    squares[:, 0] = (values[:, 0] - centre.value) ** 2
    decision = decide(squares, level, names, line=values)
    unbiased = centre.standard_error**2 if centre.models else float(np.nanmean(squares[:, 0])) / (n - 1)
    value = decision.estimate.value + unbiased
    if value <= 0:
        decision = Decision(decision.plain, decision.plain, decision.expected, "the mix has no variance above 0")
        value = decision.plain.value + unbiased

    def bounds(half_width: float, around: float) -> Bounds:
        factor = math.exp(half_width / around)
        return Bounds(around / factor, around * factor, level)

    alone = decision.plain.value + unbiased
    low, high, _ = bounds(decision.estimate.half_width, value) if value else (0.0, 0.0, level)
    other = bounds(decision.plain.half_width, alone) if alone else None
    return Quantity(value, low, high, decision.estimate.models, other, decision.refusal, decision.expected)


def share_below(values: Matrix, bound: float, level: float, names: Sequence[str]) -> Quantity:
    """Estimate P(metric < bound)."""
    y = values[~np.isnan(values[:, 0]), 0]
    below = int(np.sum(y < bound))
    exact = _clopper_pearson(below, len(y), level)
    if min(below, len(y) - below) < LEAST_SIDE:
        few = f"{below} of {len(y)} draws of {names[0]} are below {bound:g}: fewer than {LEAST_SIDE} on one side"
        return Quantity(below / len(y), exact.low, exact.high, (), exact, few, None)
    decision = decide(_indicators(values, bound), level, names)
    if not decision.estimate.models:
        refusal = decision.refusal.replace("does not vary", "is always on the same side of the bound")
        return Quantity(below / len(y), exact.low, exact.high, (), exact, refusal, decision.expected)
    low, high, _ = decision.estimate.interval
    value = min(max(decision.estimate.value, 0.0), 1.0)
    return Quantity(value, max(low, 0.0), min(high, 1.0), decision.estimate.models, exact, "", decision.expected)


def _indicators(values: Matrix, bound: float) -> Matrix:
    below = np.where(np.isnan(values), np.nan, 0.0)
    for model in range(values.shape[1]):
        meant = _as_expensive(values, model)
        below[:, model] = np.where(np.isnan(meant), np.nan, meant < bound)
    return below


def _as_expensive(values: Matrix, model: int) -> Matrix:
    """Return a model's values through a straight line over the shared draws; NaN without such a line."""
    if model == 0:
        return values[:, 0]
    both = ~np.isnan(values[:, 0]) & ~np.isnan(values[:, model])
    if both.sum() < LEAST_SHARED or np.ptp(values[both, model]) == 0:
        return np.full(len(values), np.nan)
    slope, start = np.polyfit(values[both, model], values[both, 0], 1)
    return np.asarray(start + slope * values[:, model])


def _clopper_pearson(count: int, n: int, level: float) -> Bounds:
    tail = (1 - level) / 2
    low = float(betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, n - count, 1 - tail)) if count < n else 1.0
    return Bounds(low, high, level)


def quantile(values: Matrix, p: float, level: float, names: Sequence[str]) -> Quantity:
    """Estimate the value below which a share ``p`` of the expensive model's draws lies."""
    y = values[~np.isnan(values[:, 0]), 0]
    every = np.concatenate([_as_expensive(values, model) for model in range(values.shape[1])])
    inside = every[(every >= y.min()) & (every <= y.max())]
    candidates = np.unique(inside)
    if len(candidates) > MOST_CANDIDATES:
        candidates = candidates[np.linspace(0, len(candidates) - 1, MOST_CANDIDATES).round().astype(int)]
    at_candidates = [share_below(values, float(np.nextafter(candidate, np.inf)), level, names) for candidate in candidates]
    raw = np.asarray([estimate.value for estimate in at_candidates])
    # An estimated share may fall where it should rise: halfway between the least and the most monotone shares that it lies in.
    shares = (np.maximum.accumulate(raw) + np.minimum.accumulate(raw[::-1])[::-1]) / 2
    at = min(int(np.searchsorted(shares, p)), len(candidates) - 1)
    possible = [
        float(value)
        for value, estimate in zip(candidates, at_candidates, strict=True)
        if estimate.low is not None and estimate.high is not None and estimate.low <= p <= estimate.high
    ]
    plain = [
        float(value)
        for value, estimate in zip(candidates, at_candidates, strict=True)
        if estimate.plain is not None and estimate.plain.low <= p <= estimate.plain.high
    ]
    low = min(possible, default=None)
    high = max(possible, default=None)
    # Where the least or the largest value seen may be the quantile, nothing bounds it on that side.
    low = None if low is not None and low <= y.min() else low
    high = None if high is not None and high >= y.max() else high
    alone = Bounds(min(plain), max(plain), level) if plain and min(plain) > y.min() and max(plain) < y.max() else None
    return Quantity(
        float(candidates[at]), low, high, at_candidates[at].models, alone, at_candidates[at].refusal, at_candidates[at].expected
    )
