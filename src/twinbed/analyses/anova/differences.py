"""Intervals of differences between levels: of neighbours, where levels have an order, and of all pairs.

Each difference has its own interval (Student's t, for a pair that was chosen beforehand) and a simultaneous one.  Neighbours
have Šidák's, over the neighbours of a factor.  All pairs have Tukey-Kramer's; with the standard errors and degrees of freedom
of unequal variances of one factor this is Games-Howell's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from twinbed.analyses.anova.estimates import Estimates
from twinbed.analyses.anova.result import Difference
from twinbed.model.result import Interval
from twinbed.statistics.anova import Floats
from twinbed.statistics.pairwise import PairTest, by_itself, sidak, tukey_kramer

MOST_LEVELS = 12
"""Of a factor with more levels only neighbours are compared: all pairs would be 78 and more."""


def differences(estimates: Estimates) -> Iterator[Difference]:
    """Yield the differences of every factor whose main effect is in the model."""
    for name in estimates.of.factors:
        if (name,) not in estimates.terms:
            continue
        column = estimates.of.frame.columns[name]
        count = len(column.levels)
        weights = estimates.mean_weights(name)
        if (column.ordered and count > 2) or count > MOST_LEVELS:
            for first in range(count - 1):
                yield _difference(estimates, name, weights, first, first + 1, True)
        if count <= MOST_LEVELS:
            for first, second in itertools.combinations(range(count), 2):
                yield _difference(estimates, name, weights, first, second, False)


def _difference(estimates: Estimates, name: str, weights: Floats, first: int, second: int, neighbours: bool) -> Difference:
    levels = estimates.of.frame.columns[name].levels
    apart = weights[second] - weights[first]
    estimate = estimates.value(apart)
    error, freedom = estimates.error(apart)
    own: PairTest | None = None
    together: PairTest | None = None
    if error is not None:
        own = by_itself(estimate, error, freedom, estimates.confidence)
        if neighbours:
            together = sidak(estimate, error, freedom, estimates.confidence, len(levels) - 1)
        else:
            together = tukey_kramer(estimate, error, freedom, estimates.confidence, len(levels))
    return Difference(
        factor=name,
        first=levels[first],
        second=levels[second],
        neighbours=neighbours,
        estimate=estimate,
        standard_error=error,
        interval=_interval(estimate, own, estimates.confidence),
        simultaneous=_interval(estimate, together, estimates.confidence),
        p=own.p if own else None,
        p_simultaneous=together.p if together else None,
        method=_method(estimates, neighbours, len(levels)),
    )


def _method(estimates: Estimates, neighbours: bool, levels: int) -> str:
    if estimates.unequal and estimates.one_factor:
        return "Welch's t" if levels == 2 else "Welch's t, Sidak" if neighbours else "Games-Howell"
    way = "t" if levels == 2 else "Sidak" if neighbours else "Tukey-Kramer"
    return way if estimates.robust is None else f"{way}, HC3"


def _interval(estimate: float, test: PairTest | None, confidence: float) -> Interval | None:
    return Interval(estimate - test.half_width, estimate + test.half_width, confidence) if test else None
