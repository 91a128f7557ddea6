"""Means, effects and differences of levels as weighted sums with standard errors.

One factor: sums of the levels' means.  Their variance is the pooled s²/n_j.  If variances differ, each level has its own, with
Satterthwaite's degrees of freedom (for a difference these are Welch's).  Several factors: sums of coefficients, with covariance
s² (X'X)^-1, or HC3 if variances differ.

Each difference has its own interval (Student's t, for a pair that was chosen beforehand) and a simultaneous one.  Neighbours
have Šidák's, over the neighbours of a factor.  All pairs have Tukey-Kramer's; with the standard errors and degrees of freedom
of unequal variances of one factor this is Games-Howell's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.analyses.anova.model import Data
from twinbed.analyses.anova.result import Difference, Line, Term
from twinbed.model.result import Interval
from twinbed.statistics import anova
from twinbed.statistics.anova import Fit, Floats, Integers
from twinbed.statistics.distribution import t_quantile
from twinbed.statistics.pairwise import PairTest, by_itself, sidak, tukey_kramer

ROUNDING = 1e-13
"""A value below this share of the largest one is rounding, and shown as 0."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """Weighted sums. ``robust``: the HC3 covariance of the coefficients; None for one factor or equal variances."""

    of: Data
    fit: Fit
    terms: tuple[Term, ...]
    errors: Line
    unequal: bool
    robust: Floats | None
    confidence: float

    @property
    def one_factor(self) -> bool:
        return len(self.of.factors) == 1

    def effect_weights(self, term: Term) -> tuple[Integers, Floats]:
        """Return the combinations of a term's levels as codes, and the weights that give the effect of each."""
        cells = self.of.of
        if self.one_factor:
            return cells.codes, np.eye(len(cells.counts)) - cells.counts / cells.n
        levels = [cells.levels[at] for at in self.of.positions(term)]
        codes = np.array(list(np.ndindex(*levels)), dtype=np.intp)
        columns = anova.columns(tuple(range(len(term))), codes, levels)
        start = self.fit.starts[self.terms.index(term)]
        weights = np.zeros((len(codes), len(self.fit.coefficients)))
        weights[:, start : start + columns.shape[1]] = columns
        return codes, weights

    def mean_weights(self, factor: str) -> Floats:
        """Return the weights that give the mean of each level of a factor, less the mean of all."""
        if self.one_factor:
            return np.eye(len(self.of.of.counts))
        _, weights = self.effect_weights((factor,))
        weights[:, 0] = 1
        return weights

    def value(self, weights: Floats) -> float:
        """Return the sum with these weights."""
        return float(weights @ (self.of.of.means if self.one_factor else self.fit.coefficients))

    def error(self, weights: Floats) -> tuple[float | None, float]:
        """Return standard error and degrees of freedom; None without errors to estimate it from."""
        if not self.errors.mean_square:
            return None, 0.0
        cells = self.of.of
        if not self.one_factor:
            covariance = self.fit.unscaled * self.errors.mean_square if self.robust is None else self.robust
            variance, freedom = float(weights @ covariance @ weights), float(self.errors.freedom)
        elif not self.unequal:
            variance = float(np.sum(weights**2 / cells.counts)) * self.errors.mean_square
            freedom = float(self.errors.freedom)
        else:
            used = weights != 0
            if np.any(cells.counts[used] < 2):
                return None, 0.0
            free = cells.counts[used] - 1
            parts = weights[used] ** 2 * cells.within[used] / free / cells.counts[used]
            variance = float(np.sum(parts))
            freedom = variance**2 / float(np.sum(parts**2 / free)) if variance > 0 else 0.0
        return (math.sqrt(variance), freedom) if variance > 0 else (None, 0.0)

    def interval(self, middle: float, error: tuple[float | None, float]) -> Interval | None:
        """Return Student's t about ``middle``."""
        if error[0] is None:
            return None
        half = t_quantile((1 + self.confidence) / 2, error[1]) * error[0]
        return Interval(middle - half, middle + half, self.confidence)

    def shown(self, value: float) -> float:
        """Return a mean; one that is 0 but for rounding is 0."""
        return 0.0 if abs(value) <= ROUNDING * float(np.max(np.abs(self.of.of.centred + self.of.of.mean))) else value


def estimates(of: Data, fit: Fit, terms: Sequence[Term], errors: Line, unequal: bool, confidence: float) -> Estimates:
    robust = anova.robust_covariance(of.of, fit) if unequal and len(of.factors) > 1 and errors.mean_square else None
    return Estimates(of, fit, tuple(terms), errors, unequal, robust, confidence)


MOST_LEVELS = 12
"""A factor with more levels has only its neighbours compared: all pairs would be 78 or more."""


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
