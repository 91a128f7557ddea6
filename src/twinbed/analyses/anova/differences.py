"""Intervals of differences between levels: of neighbours, where levels have an order, and of all pairs.

Each has its own interval (Student's t, for a pair that was chosen beforehand) and a simultaneous one.  Neighbours: Šidák's,
over the neighbours of a factor.  All pairs: Tukey-Kramer's.  Where variances differ: for one factor Welch's standard errors and
Games-Howell's intervals; for several the HC3 covariance of the coefficients.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.analyses.anova.model import Data
from twinbed.analyses.anova.table import block, combinations
from twinbed.model.result import Interval
from twinbed.model.variance import Difference, Line, Term
from twinbed.statistics.anova import Fit, Floats, robust_covariance
from twinbed.statistics.pairwise import Group, Judged, by_itself, games_howell, sidak, tukey_kramer, welch

MOST_LEVELS = 16
"""A factor with more has its neighbours compared only: all pairs would be 136 and more."""


@dataclass(frozen=True, slots=True)
class _Pair:
    first: int
    second: int
    estimate: float
    standard_error: float | None
    freedom: float


def groups(of: Data) -> list[Group]:
    """The cells, summed up."""
    return [
        Group(int(count), float(mean), float(within) / (count - 1) if count > 1 else 0.0)
        for count, mean, within in zip(of.of.counts, of.of.means, of.of.within, strict=True)
    ]


def differences(
    of: Data, found: Fit, terms: Sequence[Term], errors: Line, unequal: bool, confidence: float
) -> Iterator[Difference]:
    """Of every factor whose main effect is in the model. ``unequal``: whether variances of cells differ."""
    robust = robust_covariance(of.of, found) if unequal and len(of.factors) > 1 else None
    for at, name in enumerate(of.factors):
        if (name,) not in terms:
            continue
        count = of.of.levels[at]
        neighbours = [(code, code + 1) for code in range(count - 1)]
        if (of.frame.columns[name].ordered and count > 2) or count > MOST_LEVELS:
            for pair in _pairs(of, found, terms, name, errors, neighbours, unequal, robust):
                yield _judged(of, name, pair, True, unequal, robust is not None, confidence)
        if count <= MOST_LEVELS:
            every = list(itertools.combinations(range(count), 2))
            for pair in _pairs(of, found, terms, name, errors, every, unequal, robust):
                yield _judged(of, name, pair, False, unequal, robust is not None, confidence)


def _pairs(
    of: Data,
    found: Fit,
    terms: Sequence[Term],
    name: str,
    errors: Line,
    pairs: Sequence[tuple[int, int]],
    unequal: bool,
    robust: Floats | None,
) -> Iterator[_Pair]:
    if unequal and len(of.factors) == 1:
        each = groups(of)
        for one, two in pairs:
            own = welch(each[one], each[two])
            yield _Pair(one, two, each[two].mean - each[one].mean, *(own or (None, 1.0)))
        return
    weights = block(of, found, terms, (name,), combinations(of, (name,)))
    covariance = robust if robust is not None else found.unscaled * (errors.mean_square or 0.0)
    for one, two in pairs:
        apart = weights[two] - weights[one]
        variance = float(apart @ covariance @ apart)
        known = bool(errors.mean_square) and variance > 0
        estimate = float(np.dot(apart, found.coefficients))
        yield _Pair(one, two, estimate, math.sqrt(variance) if known else None, float(errors.freedom))


def _judged(of: Data, name: str, pair: _Pair, neighbours: bool, unequal: bool, robust: bool, confidence: float) -> Difference:
    column = of.frame.columns[name]
    count = len(column.levels)
    own: Judged | None = None
    together: Judged | None = None
    if pair.standard_error is not None:
        own = by_itself(pair.estimate, pair.standard_error, pair.freedom, confidence)
        if neighbours:
            together = sidak(pair.estimate, pair.standard_error, pair.freedom, confidence, count - 1)
        elif unequal and len(of.factors) == 1:
            each = groups(of)
            together = games_howell(each[pair.first], each[pair.second], confidence, count)
        else:
            together = tukey_kramer(pair.estimate, pair.standard_error, pair.freedom, confidence, count)
    return Difference(
        factor=name,
        first=column.levels[pair.first],
        second=column.levels[pair.second],
        neighbours=neighbours,
        estimate=pair.estimate,
        standard_error=pair.standard_error,
        interval=_interval(pair.estimate, own, confidence),
        simultaneous=_interval(pair.estimate, together, confidence),
        p=own.p if own else None,
        p_simultaneous=together.p if together else None,
        method=_method(neighbours, unequal, len(of.factors) == 1, robust),
    )


def _method(neighbours: bool, unequal: bool, one_factor: bool, robust: bool) -> str:
    if unequal and one_factor:
        return "Welch's t, Sidak" if neighbours else "Games-Howell"
    way = "Sidak" if neighbours else "Tukey-Kramer"
    return f"{way}, HC3" if robust else way


def _interval(estimate: float, found: Judged | None, confidence: float) -> Interval | None:
    return Interval(estimate - found.half_width, estimate + found.half_width, confidence) if found else None
