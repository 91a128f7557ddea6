"""Estimates of a cell's mean and quantiles, and the seeds' two rules of thumb on pairs of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from twinbed.metrics.metric import Scale
from twinbed.model.caution import Caution
from twinbed.model.comparison import Estimate, Estimated, Measured, Quantile
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.model.tables import TESTBED
from twinbed.statistics.moments import factor, mean_interval, variance
from twinbed.statistics.quantile import fewest, quantile, quantile_interval
from twinbed.statistics.sample import Sample

SHARES = (0.5, 0.9, 0.95, 0.99)
"""The shares of the quantiles that are estimated."""


def estimate(
    values: Sequence[float], confidence: float, scale: str = Scale.RATIO, units: Sequence[float] | None = None
) -> Estimate:
    """Return mean, standard deviation, Student's t interval of the mean (means are taken as normal), and quantiles.

    ``units`` are the means of sessions, if these are what is compared. Names have neither mean nor quantiles, and what has only
    an order has quantiles but no mean.
    """
    values, n = Sample.of(values), len(values)
    shares = () if n < 2 or scale == Scale.NOMINAL else SHARES
    quantiles = tuple(_quantile(values, share, confidence) for share in shares)
    if n == 0 or scale in (Scale.NOMINAL, Scale.ORDINAL):
        return Estimate(n, None, None, None, values, quantiles)
    mean = values.average
    centre, interval = _centre(values if units is None else units, confidence, scale)
    if n == 1:
        return Estimate(1, mean, None, None, values, centre=centre)
    deviation, own = math.sqrt(variance(values)), Interval(*mean_interval(values, confidence))
    return Estimate(n, mean, deviation, own, values, quantiles, centre, interval)


def _centre(values: Sequence[float], confidence: float, scale: str) -> tuple[float, Interval | None]:
    sample = Sample.of(values)
    geometric = scale == Scale.RATIO and sample.least > 0 and sample.varies
    scaled = sample.logarithms if geometric else sample
    back = factor if geometric else float
    if len(values) == 1:
        return values[0], None
    low, high, level = mean_interval(scaled, confidence)
    return back(scaled.average), Interval(back(low), back(high), level)


def _quantile(values: Sequence[float], share: float, confidence: float) -> Quantile:
    bounds = quantile_interval(values, share, confidence)
    return Quantile(share, quantile(values, share), Interval(*bounds) if bounds else None, fewest(share, confidence))


def within_rule(testbed: Estimate, reference: Estimate, margin: float) -> bool | None:
    """Return whether the means differ by no more than the margin, as a share of the reference's (ICNC, section II)."""
    if testbed.mean is None or reference.mean is None:
        return None
    return abs(testbed.mean - reference.mean) <= margin * abs(reference.mean)


def intervals_overlap(testbed: Estimate, reference: Estimate) -> bool | None:
    """Return whether the intervals of the means have a point in common (ICNC, section II: "a stronger definition")."""
    own, other = testbed.interval, reference.interval
    return None if own is None or other is None else own.low <= other.high and other.low <= own.high


def measured(
    of: Estimated,
    base: Estimated,
    names: tuple[str, str],
    cell: Mapping[str, Level],
    margin: float,
    cautions: tuple[Caution, ...],
    *,
    headline: bool,
    by: str = TESTBED,
    paired: bool = False,
    sessions: tuple[int, int] | None = None,
) -> Measured:
    """Return one against the other before any test; ``names`` are what the two are called, ``cell`` where both are."""
    return Measured(
        metric=of.metric,
        unit=of.unit,
        layer=of.layer,
        scale=of.scale,
        host=of.host,
        direction=of.direction,
        headline=headline,
        cell=cell,
        testbed=names[0],
        reference=names[1],
        by=by,
        estimate=of.estimate,
        reference_estimate=base.estimate,
        margin=margin,
        within_rule=within_rule(of.estimate, base.estimate, margin) if of.scale == Scale.RATIO else None,
        intervals_overlap=intervals_overlap(of.estimate, base.estimate),
        paired=paired,
        sessions=sessions,
        step=max(of.step, base.step),
        events=of.events,
        cautions=cautions,
    )
