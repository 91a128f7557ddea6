"""The table of an analysis of variance, effects, means, and what a truncated model costs.

One factor is Jain's (1991) chapter 20: an effect is the mean at a level less the mean of all values, and has the variance
s²(1/n_j - 1/N).  Several factors are coded to sum to zero: an effect is what a combination of levels adds to what the terms
below it say, over cells that count alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from twinbed.analyses.anova.model import Data
from twinbed.model.result import Interval
from twinbed.model.variance import Effect, Line, Mean, SignEffect, Term, Truncation
from twinbed.statistics import anova, factorial
from twinbed.statistics.anova import Fit, Floats
from twinbed.statistics.quantiles import f_quantile, f_tail, t_quantile

NOTHING = 1e-24
"""A smaller share of the variation than this is rounding, not error."""
MOST_COMBINATIONS = 400
"""Terms with more combinations of levels have their effects left out."""


def errors_of(of: Data, found: Fit) -> Line:
    """The line of the errors; its mean square is None where nothing is left to estimate it from."""
    error = 0.0 if found.error <= NOTHING * of.of.total else found.error
    free = found.error_freedom
    return Line((), error, error / of.of.total, free, error / free if free > 0 else None)


def lines(of: Data, terms: Sequence[Term], kind: str, errors: Line, confidence: float) -> Iterator[Line]:
    """One a term. F and p are None where there are no errors to hold it against."""
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


def interval(middle: float, standard_error: float | None, free: int, confidence: float) -> Interval | None:
    """Student's t; None without a standard error."""
    if standard_error is None:
        return None
    half = t_quantile((1 + confidence) / 2, free) * standard_error
    return Interval(middle - half, middle + half, confidence)


def block(of: Data, found: Fit, terms: Sequence[Term], term: Term, codes: np.ndarray) -> Floats:
    """Rows of weights of the coefficients that make a term's effects at combinations of its levels."""
    at = list(terms).index(term)
    columns = anova.columns(tuple(range(len(term))), codes, [of.of.levels[factor] for factor in of.positions(term)])
    weights = np.zeros((len(codes), len(found.coefficients)))
    weights[:, found.starts[at] : found.starts[at] + columns.shape[1]] = columns
    return weights


def combinations(of: Data, term: Term) -> np.ndarray:
    """Every combination of a term's levels, as codes, the last factor fastest."""
    return np.array(list(np.ndindex(*(of.of.levels[at] for at in of.positions(term)))), dtype=np.intp)


def effects(of: Data, found: Fit, terms: Sequence[Term], errors: Line, confidence: float) -> Iterator[Effect]:
    """Of every term with at most MOST_COMBINATIONS combinations of levels."""
    for term in terms:
        if math.prod(of.of.levels[at] for at in of.positions(term)) > MOST_COMBINATIONS:
            continue
        codes = combinations(of, term)
        if len(of.factors) == 1:
            estimates = of.of.means
            variances = 1 / of.of.counts - 1 / of.of.n
        else:
            weights = block(of, found, terms, term, codes)
            estimates = weights @ found.coefficients
            variances = np.einsum("ij,jk,ik->i", weights, found.unscaled, weights)
        for row, estimate, variance in zip(codes, estimates, variances, strict=True):
            error = _error(errors, float(variance))
            bounds = interval(float(estimate), error, errors.freedom, confidence)
            yield Effect(term, _levels(of, term, row), float(estimate), error, bounds)


def _error(errors: Line, variance: float) -> float | None:
    return math.sqrt(errors.mean_square * max(variance, 0.0)) if errors.mean_square else None


def _levels(of: Data, term: Term, codes: np.ndarray) -> tuple[str | int | float | bool | None, ...]:
    return tuple(of.frame.columns[name].levels[code] for name, code in zip(term, codes, strict=True))


def means(of: Data, found: Fit, terms: Sequence[Term], errors: Line, confidence: float) -> Iterator[Mean]:
    """Of every level of every factor, over the cells of the others, each alike."""
    for at, name in enumerate(of.factors):
        if (name,) not in terms:
            continue
        codes = combinations(of, (name,))
        weights = block(of, found, terms, (name,), codes)
        weights[:, 0] = 1
        counts = np.bincount(of.of.codes[:, at], weights=of.of.counts, minlength=of.of.levels[at])
        variances = np.einsum("ij,jk,ik->i", weights, found.unscaled, weights)
        for row, estimate, variance, count in zip(codes, weights @ found.coefficients, variances, counts, strict=True):
            middle = of.of.mean + float(estimate)
            bounds = interval(middle, _error(errors, float(variance)), errors.freedom, confidence)
            yield Mean((name,), _levels(of, (name,), row), int(count), middle, bounds)


def cell_means(of: Data, errors: Line, confidence: float) -> Iterator[Mean]:
    """Of every cell that has values, with intervals from the errors of the model; none for one factor, whose means they are."""
    if len(of.factors) == 1:
        return
    for row, mean, count in zip(of.of.codes, of.of.means, of.of.counts, strict=True):
        middle = of.of.mean + float(mean)
        bounds = interval(middle, _error(errors, 1 / count), errors.freedom, confidence)
        yield Mean(of.factors, _levels(of, of.factors, row), int(count), middle, bounds)


def signs(of: Data, confidence: float) -> Iterator[SignEffect]:
    """The sign table of a 2^k r design; nothing for another."""
    if not factorial.is_factorial(of.of):
        return
    for each in factorial.sign_effects(of.of, confidence):
        half = each.half_width
        bounds = Interval(each.effect - half, each.effect + half, confidence) if half else None
        share = each.sum_of_squares / of.of.total
        yield SignEffect(of.term(each.term), each.effect, each.sum_of_squares, share, bounds)


def truncation(of: Data, whole: Sequence[Term], kept: Sequence[Term]) -> Truncation | None:
    """What the terms of ``whole`` that are not ``kept`` accounted for; None where all are."""
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
