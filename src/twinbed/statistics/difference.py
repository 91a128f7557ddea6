"""Difference of two means, for an interval scale, whose zero is arbitrary, so that no ratio or relative margin has a meaning.

A margin is an absolute difference in the metric's unit.  Welch's t (1947, Biometrika 34:28) with Satterthwaite's degrees of
freedom, or Student's t of the differences within pairs; two one-sided tests at the margin (Schuirmann 1987).  Means are assumed
to be normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import standard_error, varies
from twinbed.statistics.ratio import p_values
from twinbed.statistics.resolution import bias
from twinbed.statistics.sample import Sample


@dataclass(frozen=True, slots=True)
class DifferenceTest:
    """Mean of the values less mean of the reference, in their unit. P-values are None where there is no margin."""

    difference: float
    interval: Bounds
    """At 1 - 2 alpha."""
    wide: Bounds
    """At 1 - alpha."""
    p_equivalent: float | None
    p_different: float | None


def difference_test(
    values: Sequence[float],
    reference: Sequence[float],
    margin: float | None,
    alpha: float,
    *,
    steps: tuple[float, float] = (0.0, 0.0),
    paired: bool = False,
) -> DifferenceTest:
    """Compare two samples of at least two values each. ``steps`` are the rounding steps of both samples, in their unit. The
    interval and each test allow for what rounding can hide (``statistics.resolution``). With ``paired`` the values of both
    belong together one by one."""
    difference = Sample.of(values).average - Sample.of(reference).average
    hidden = bias(values, steps[0]) + bias(reference, steps[1])
    error, df = standard_error(values, reference, paired)
    if not error or (not varies(values) and not varies(reference)):
        return DifferenceTest(
            difference,
            Bounds(difference - hidden, difference + hidden, 1 - 2 * alpha),
            Bounds(difference - hidden, difference + hidden, 1 - alpha),
            None if margin is None else float(abs(difference) + hidden > margin),
            None if margin is None else float(abs(difference) - hidden <= margin),
        )

    def interval(tail: float) -> Bounds:
        half = float(stdtrit(df, 1 - tail)) * error + hidden
        return Bounds(difference - half, difference + half, 1 - 2 * tail)

    p_equivalent = p_different = None
    if margin is not None:
        p_equivalent, _ = p_values((difference - hidden + margin) / error, (difference + hidden - margin) / error, df)
        _, p_different = p_values((difference + hidden + margin) / error, (difference - hidden - margin) / error, df)
    return DifferenceTest(difference, interval(alpha), interval(alpha / 2), p_equivalent, p_different)
