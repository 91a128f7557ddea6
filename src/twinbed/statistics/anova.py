"""Sums of squares of a linear model of categorical factors: types I (sequential), II (marginal) and III (after all others).

Observations are first reduced to cells (combinations of levels): every model of factors has the same sums of squares on the
cells' means, weighted by their counts, plus the squares within cells.  The work therefore depends on the number of cells, not
of rows. Values are centred before anything is squared, and sums of cells are exact (``math.fsum``). A term's sum of squares is
the squared length of the response's part along the term's own directions (Householder QR), never a difference of two large
residual sums.  Factors are coded by sum contrasts (rows 1, 0 | 0, 1 | -1, -1), without which type III has no meaning.

Limits: factors only; cells that a term needs must not be empty, and terms must not be collinear (``Aliased``). Sources: Jain,
The Art of Computer Systems Performance Analysis (1991), chapters 20 to 23; Fox, Applied Regression Analysis (2016), chapter 8
(types II and III, as R's car::Anova); MacKinnon & White (1985) for HC3.

Tests of equal means or locations that assume less than analysis of variance.

Function ``welch_anova`` is for one factor whose variances differ (Welch 1951).  Function ``kruskal_wallis`` is for one factor
and any distribution of one shape, by ranks with the correction for ties (1952).  Function ``permutation`` is for any term of a
model with exchangeable errors of any distribution. It permutes residuals of the model without the term (Freedman & Lane 1983),
and its p-value counts the data's own order (Phipson & Smyth 2010).  A result is None if the data do not allow the test.

2^k r factorial designs by the sign table: effects, allocation of variation, intervals of effects.

The design has k factors of two levels (-1 the first, +1 the second), and r replicates of every combination.  An effect q is
half the change from the first level to the second; its sum of squares is 2^k r q^2.  Where r is 1 there is no estimate of the
error, and no interval.  Source: Jain (1991), chapters 17 and 18.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.assumptions import Tested
from twinbed.statistics.distribution import f_tail

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Term = tuple[int, ...]
"""The factors (positions, ascending) whose interaction it is; one factor is a main effect."""

DEPENDENT = 1e-8
"""A column counts as dependent on earlier ones if the part that they do not explain is a smaller share of its length."""


class Aliased(ValueError):
    """``term`` cannot be distinguished from ``others`` (none: from the mean) with the existing cells."""

    def __init__(self, term: Term, others: tuple[Term, ...]) -> None:
        super().__init__(f"term {term} is collinear with {others}")
        self.term = term
        self.others = others


@dataclass(frozen=True, slots=True)
class Cells:
    """Observations by cell. ``means`` are of values less ``mean``; ``within`` are each cell's squares about its own mean."""

    codes: Integers
    """(cells, factors): each cell's level of each factor."""
    levels: tuple[int, ...]
    """Number of levels of each factor."""
    counts: Floats
    means: Floats
    within: Floats
    mean: float
    of_row: Integers
    """Each observation's cell."""
    centred: Floats
    """Each observation less ``mean``."""

    @property
    def n(self) -> int:
        return len(self.of_row)

    @property
    def total(self) -> float:
        """Return the sum of squares about the mean (Jain's SST)."""
        return math.fsum(self.centred**2)


def cells(y: Floats, codes: Sequence[Integers], levels: Sequence[int]) -> Cells:
    """Reduce observations to cells; ``codes`` holds each factor's level of each observation."""
    shift = math.fsum(y) / len(y)
    centred = y - shift
    # The mean of large values is rounded as they are; the mean of the remainder corrects that.
    rest = math.fsum(centred) / len(y)
    centred = centred - rest
    table = np.stack(codes, axis=1) if codes else np.zeros((len(y), 0), dtype=np.intp)
    combinations, of_row = np.unique(table, axis=0, return_inverse=True)
    of_row = of_row.reshape(-1)
    order = np.argsort(of_row, kind="stable")
    counts = np.bincount(of_row, minlength=len(combinations))
    means, within = np.empty(len(combinations)), np.empty(len(combinations))
    for at, group in enumerate(np.split(centred[order], np.cumsum(counts)[:-1])):
        means[at] = mean_of(group)
        within[at] = math.fsum((group - means[at]) ** 2)
    return Cells(combinations, tuple(levels), counts.astype(float), means, within, shift + rest, of_row, centred)


def mean_of(values: Floats) -> float:
    """Return the mean; exactly the common value if all values are the same."""
    first = float(values[0])
    return first + math.fsum(values - first) / len(values)


def contrasts(levels: int) -> Floats:
    """Return sum contrasts: (levels, levels - 1)."""
    return np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1))])


def columns(term: Term, codes: Integers, levels: Sequence[int]) -> Floats:
    """Return the columns of a term's contrasts for rows of codes: (rows, product of levels less one)."""
    product = np.ones((len(codes), 1))
    for factor in term:
        of_factor = contrasts(levels[factor])[codes[:, factor]]
        product = (product[:, :, None] * of_factor[:, None, :]).reshape(len(codes), -1)
    return product


def freedom(term: Term, levels: Sequence[int]) -> int:
    """Return a term's degrees of freedom."""
    return math.prod(levels[factor] - 1 for factor in term)


def directions(of: Cells, before: Sequence[Term], term: Term) -> Floats:
    """Return orthonormal directions (cells, df) of a term beyond the mean and the terms ``before`` it. They are for values
    weighted by the roots of the counts. Raises Aliased."""
    blocks = [np.ones((len(of.codes), 1)), *(columns(model_term, of.codes, of.levels) for model_term in (*before, term))]
    design = np.hstack(blocks) * np.sqrt(of.counts)[:, None]
    q, r = np.linalg.qr(design)
    _refuse_dependence(design, r, [(), *before, term], [block.shape[1] for block in blocks])
    return q[:, design.shape[1] - blocks[-1].shape[1] :]


def _refuse_dependence(design: Floats, r: Floats, terms: Sequence[Term], widths: Sequence[int]) -> None:
    lengths = np.linalg.norm(design, axis=0)
    owners = np.repeat(np.arange(len(terms)), widths)
    for at in range(design.shape[1]):
        if at < len(r) and abs(r[at, at]) > DEPENDENT * lengths[at]:
            continue
        owner = terms[owners[at]]
        weights = np.linalg.lstsq(design[:, :at], design[:, at], rcond=None)[0]
        used = dict.fromkeys(terms[owners[column]] for column in np.flatnonzero(np.abs(weights) > 1e-6))
        raise Aliased(owner, tuple(term for term in used if term and term != owner))


def sums_of_squares(of: Cells, terms: Sequence[Term], kind: str) -> list[float]:
    """Return each term's sum of squares. Raises Aliased. ``kind`` is ``I`` (after the terms before it), ``II`` (after all terms
    that do not contain it) or ``III`` (after all others)."""
    weighted = of.means * np.sqrt(of.counts)
    return [
        float(np.sum((directions(of, before_of(terms, at, kind), term).T @ weighted) ** 2)) for at, term in enumerate(terms)
    ]


def before_of(terms: Sequence[Term], at: int, kind: str) -> list[Term]:
    """Return the terms that a term is adjusted for."""
    if kind == "I":
        return list(terms[:at])
    others = [*terms[:at], *terms[at + 1 :]]
    return others if kind == "III" else [other for other in others if not set(terms[at]) <= set(other)]


@dataclass(frozen=True, slots=True)
class Fit:
    """A model fitted to cells. ``starts`` holds where each term's coefficients begin; the mean's is the first."""

    coefficients: Floats
    unscaled: Floats
    """The inverse of X'WX: times the mean square of errors it is the covariance of the coefficients."""
    fitted: Floats
    """The fitted value of each cell, less the mean of all."""
    design: Floats
    """The row of each cell, not weighted."""
    error: float
    """Sum of squares of the residuals."""
    error_freedom: int
    starts: tuple[int, ...]

    @property
    def mean_square(self) -> float | None:
        """Return the mean square of errors; None if no degree of freedom is left."""
        return self.error / self.error_freedom if self.error_freedom > 0 else None


def fit(of: Cells, terms: Sequence[Term]) -> Fit:
    """Fit the model by least squares. Raises Aliased."""
    blocks = [np.ones((len(of.codes), 1)), *(columns(term, of.codes, of.levels) for term in terms)]
    widths = [block.shape[1] for block in blocks]
    design = np.hstack(blocks)
    root = np.sqrt(of.counts)
    weighted = design * root[:, None]
    q, r = np.linalg.qr(weighted)
    _refuse_dependence(weighted, r, [(), *terms], widths)
    coefficients = np.linalg.solve(r, q.T @ (root * of.means))
    inverse = np.linalg.solve(r, np.eye(len(r)))
    saturated = design.shape[1] == len(of.codes)
    fitted = of.means.copy() if saturated else design @ coefficients
    lack = 0.0 if saturated else float(np.sum(of.counts * (of.means - fitted) ** 2))
    error = math.fsum(of.within) + lack
    starts = tuple(int(start) for start in np.cumsum(widths)[:-1])
    return Fit(coefficients, inverse @ inverse.T, fitted, design, error, of.n - design.shape[1], starts)


def robust_covariance(of: Cells, model: Fit) -> Floats | None:
    """Return the covariance of the coefficients by HC3, whatever the variances of cells; None if an observation has leverage
    1."""
    leverage = np.einsum("ij,jk,ik->i", model.design, model.unscaled, model.design)
    if np.any(leverage > 1 - 1e-9):
        return None
    squares = of.within + of.counts * (of.means - model.fitted) ** 2
    middle = model.design.T @ (model.design * (squares / (1 - leverage) ** 2)[:, None])
    return np.asarray(model.unscaled @ middle @ model.unscaled)


def wald(model: Fit, covariance: Floats, terms: Sequence[Term], at: int, kind: str) -> float | None:
    """Return F of one term from a covariance of coefficients; None if the covariance is singular. Type III takes the term's own
    coefficients. Type II takes the part of them that is conjugate to those of the terms that contain it (as car::Anova does
    with vcov.)."""
    ends = [*model.starts[1:], len(model.coefficients)]

    def of_term(index: int) -> list[int]:
        return list(range(model.starts[index], ends[index]))

    identity = np.eye(len(model.coefficients))
    containing = [index for index, term in enumerate(terms) if index != at and set(terms[at]) <= set(term)]
    rows = identity[of_term(at)]
    if kind == "II" and containing:
        inner = identity[[row for index in containing for row in of_term(index)]]
        both = np.vstack([rows, inner])
        q, _ = np.linalg.qr(both @ covariance @ inner.T, mode="complete")
        rows = q[:, len(inner) :].T @ both
    middle = rows @ covariance @ rows.T
    if np.linalg.matrix_rank(middle) < len(rows):
        return None
    values = rows @ model.coefficients
    return float(values @ np.linalg.solve(middle, values)) / len(rows)


ROUNDS = 1999
"""The number of permutations: the least p-value is 1/2000, and the error of one near 0.05 is 0.005."""
MOST_WORK = 5e8
"""Multiplications a term may take."""


@dataclass(frozen=True, slots=True)
class Group:
    """A level's values, summed up; ``variance`` has n - 1 in its denominator."""

    n: int
    mean: float
    variance: float


def welch_anova(groups: Sequence[Group]) -> Tested | None:
    """Test equal means where variances differ; None where a group has one value or does not vary."""
    if len(groups) < 2 or any(group.n < 2 or group.variance <= 0 for group in groups):
        return None
    weights = [group.n / group.variance for group in groups]
    total, k = math.fsum(weights), len(groups)
    mean = math.fsum(weight * group.mean for weight, group in zip(weights, groups, strict=True)) / total
    spread = math.fsum((1 - w / total) ** 2 / (g.n - 1) for w, g in zip(weights, groups, strict=True)) / (k * k - 1)
    between = math.fsum(w * (g.mean - mean) ** 2 for w, g in zip(weights, groups, strict=True)) / (k - 1)
    statistic, freedom = between / (1 + 2 * (k - 2) * spread), 1 / (3 * spread)
    return Tested("Welch's ANOVA", statistic, (k - 1, freedom), f_tail(statistic, k - 1, freedom))


def kruskal_wallis(groups: Sequence[Floats]) -> Tested | None:
    """Test equal locations by ranks; None where all values are the same."""
    from scipy.stats import kruskal

    if len(groups) < 2 or np.ptp(np.concatenate(groups)) <= 0:
        return None
    test = kruskal(*groups)
    return Tested("Kruskal-Wallis", float(test.statistic), (len(groups) - 1,), float(test.pvalue))


def permutation(of: Cells, terms: Sequence[Term], at: int, kind: str, seed: int) -> Tested | None:
    """Compare F of a term (with the mean square of the whole model's errors) with those of permuted residuals. None where there
    are no errors, or for more work than MOST_WORK."""
    model = fit(of, terms)
    free, parameters = model.error_freedom, model.design.shape[1]
    if free <= 0 or model.error <= 0 or float(of.n) * parameters * ROUNDS > MOST_WORK:
        return None
    root = np.sqrt(of.counts)
    own = directions(of, before_of(terms, at, kind), terms[at])
    whole, _ = np.linalg.qr(model.design * root[:, None])
    rest = [term for index, term in enumerate(terms) if index != at]
    without = fit(of, rest)
    residuals = of.centred - without.fitted[of.of_row]
    # Directions of cells are divided by the roots of counts, as for single rows, so that a product over rows is one over cells.
    mine, all_of = (own / root[:, None])[of.of_row], (whole / root[:, None])[of.of_row]
    generator = np.random.Generator(np.random.PCG64(seed))

    def statistics(values: Floats) -> Floats:
        explained = np.sum((mine.T @ values) ** 2, axis=0) / own.shape[1]
        errors = np.sum(values**2, axis=0) - np.sum((all_of.T @ values) ** 2, axis=0)
        return np.asarray(explained / (np.maximum(errors, 1e-12 * np.sum(values**2, axis=0)) / free))

    observed = float(statistics(residuals[:, None])[0])
    exceeding, left = 0, ROUNDS
    chunk = max(1, int(2e6) // of.n)
    while left:
        size = min(chunk, left)
        permuted = generator.permuted(np.tile(residuals, (size, 1)), axis=1).T
        exceeding += int(np.sum(statistics(permuted) >= observed * (1 - 1e-10)))
        left -= size
    freedoms = (freedom(terms[at], of.levels), free)
    return Tested("permutation", observed, freedoms, (exceeding + 1) / (ROUNDS + 1))


@dataclass(frozen=True, slots=True)
class SignEffect:
    """One column of the sign table; ``half_width`` is of the interval of the effect, None without an estimate of the error."""

    term: Term
    effect: float
    sum_of_squares: float
    half_width: float | None


def is_factorial(of: Cells) -> bool:
    """Return whether it is a 2^k r design: two factors or more of two levels each, all combinations present, equally often."""
    k = len(of.levels)
    return k >= 2 and set(of.levels) == {2} and len(of.codes) == 2**k and len(set(of.counts.tolist())) == 1


def signs(of: Cells, term: Term) -> NDArray[np.float64]:
    """Return a term's column of the sign table, for each cell."""
    return np.asarray(np.prod(2.0 * of.codes[:, list(term)] - 1, axis=1))


def sign_effects(of: Cells, confidence: float) -> list[SignEffect]:
    """Return the effects of all factors and interactions, main effects first."""
    from scipy.special import stdtrit

    k, count = len(of.levels), float(of.counts[0])
    freedom = of.n - 2**k
    error = math.fsum(of.within)
    half = None
    if freedom > 0:
        half = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(error / freedom / of.n)
    effects = []
    for size in range(1, k + 1):
        for term in itertools.combinations(range(k), size):
            effect = math.fsum(signs(of, term) * of.means) / 2**k
            effects.append(SignEffect(term, effect, 2**k * count * effect**2, half))
    return effects
