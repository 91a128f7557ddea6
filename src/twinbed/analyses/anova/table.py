"""The table of an analysis of variance, effects, means, and the cost of a truncated model.

One factor follows Jain (1991), chapter 20: an effect is the mean at a level less the mean of all values, and has the variance
s²(1/n_j - 1/N).  Several factors are coded to sum to zero: an effect is what a combination of levels adds to the prediction of
lower terms, over equally weighted cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from twinbed.analyses.anova.estimates import Estimates
from twinbed.analyses.anova.model import Data
from twinbed.analyses.anova.result import Effect, Line, Mean, SignEffect, Term, Truncation
from twinbed.model.result import Interval
from twinbed.model.run import Level
from twinbed.statistics import anova
from twinbed.statistics.anova import Fit, Integers
from twinbed.statistics.distribution import f_quantile, f_tail

NOTHING = 1e-24
"""A share of the variation below this is rounding, not error."""
MOST_COMBINATIONS = 400
"""Effects of terms with more combinations of levels are left out."""


def errors_of(of: Data, fit: Fit) -> Line:
    """Return the line of the errors; its mean square is None without degrees of freedom."""
    error = 0.0 if fit.error <= NOTHING * of.of.total else fit.error
    free = fit.error_freedom
    return Line((), error, error / of.of.total, free, error / free if free > 0 else None)


def lines(of: Data, terms: Sequence[Term], kind: str, errors: Line, confidence: float) -> Iterator[Line]:
    """Yield a line for each term. F and p are None without errors."""
    positions = [of.positions(term) for term in terms]
    for term, at, squares in zip(terms, positions, anova.sums_of_squares(of.of, positions, kind), strict=True):
        free = anova.freedom(at, of.of.levels)
        share = squares / of.of.total
        if not errors.mean_square:
            yield Line(term, squares, share, free, squares / free)
            continue
        f = squares / free / errors.mean_square
        critical = f_quantile(confidence, free, errors.freedom)
        yield Line(term, squares, share, free, squares / free, f, critical, f_tail(f, free, errors.freedom))


def effects(estimates: Estimates) -> Iterator[Effect]:
    """Yield the effects of every term with at most MOST_COMBINATIONS combinations of levels."""
    for term in estimates.terms:
        if math.prod(estimates.of.of.levels[at] for at in estimates.of.positions(term)) > MOST_COMBINATIONS:
            continue
        for codes, weights in zip(*estimates.effect_weights(term), strict=True):
            value, error = estimates.value(weights), estimates.error(weights)
            yield Effect(
                term, _levels(estimates.of, term, codes), estimates.shown(value), error[0], estimates.interval(value, error)
            )


def _levels(of: Data, term: Term, codes: Integers) -> tuple[Level, ...]:
    return tuple(of.frame.columns[name].levels[code] for name, code in zip(term, codes, strict=True))


def means(estimates: Estimates) -> Iterator[Mean]:
    """Yield the mean of every level of every factor, over equally weighted cells of the others."""
    cells = estimates.of.of
    for at, name in enumerate(estimates.of.factors):
        if (name,) not in estimates.terms:
            continue
        counts = np.bincount(cells.codes[:, at], weights=cells.counts, minlength=cells.levels[at])
        for level, weights, count in zip(
            estimates.of.frame.columns[name].levels, estimates.mean_weights(name), counts, strict=True
        ):
            middle = estimates.shown(cells.mean + estimates.value(weights))
            yield Mean((name,), (level,), int(count), middle, estimates.interval(middle, estimates.error(weights)))


def cell_means(estimates: Estimates) -> Iterator[Mean]:
    """Yield the mean of every cell that has values; nothing with one factor, since ``means`` has them. Intervals come from the
    cell's own spread if variances differ, else from all errors."""
    cells, errors = estimates.of.of, estimates.errors
    if estimates.one_factor:
        return
    for row, mean, count, within in zip(cells.codes, cells.means, cells.counts, cells.within, strict=True):
        middle = estimates.shown(cells.mean + float(mean))
        square, free = errors.mean_square, float(errors.freedom)
        if estimates.unequal:
            square, free = (float(within) / (count - 1), float(count - 1)) if count > 1 else (None, 0.0)
        bounds = estimates.interval(middle, (math.sqrt(square / count) if square else None, free))
        yield Mean(estimates.of.factors, _levels(estimates.of, estimates.of.factors, row), int(count), middle, bounds)


def signs(of: Data, confidence: float) -> Iterator[SignEffect]:
    """Yield the sign table of a 2^k r design; nothing for other designs."""
    if not anova.is_factorial(of.of):
        return
    for effect in anova.sign_effects(of.of, confidence):
        half = effect.half_width
        bounds = Interval(effect.effect - half, effect.effect + half, confidence) if half else None
        share = effect.sum_of_squares / of.of.total
        yield SignEffect(of.term(effect.term), effect.effect, effect.sum_of_squares, share, bounds)


def truncation(of: Data, whole: Sequence[Term], kept: Sequence[Term]) -> Truncation | None:
    """Return what the terms of ``whole`` that are not ``kept`` explained; None if all are kept."""
    dropped = tuple(term for term in whole if term not in kept)
    if not dropped:
        return None
    large = anova.fit(of.of, [of.positions(term) for term in whole])
    small = anova.fit(of.of, [of.positions(term) for term in kept])
    lost, free = small.error - large.error, small.error_freedom - large.error_freedom
    errors = errors_of(of, large)
    f = lost / free / errors.mean_square if errors.mean_square else None
    return Truncation(
        dropped,
        max(0.0, lost / of.of.total),
        1 - errors.share,
        f,
        None if f is None else f_tail(f, free, large.error_freedom),
    )
