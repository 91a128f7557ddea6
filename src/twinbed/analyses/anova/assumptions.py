"""Test the assumptions, choose what to read where they fail, and write the notes on an analysis.

Variances are compared between cells, and normality is tested over all residuals, each at LEVEL.  If variances are unequal, the
alternative is Welch's ANOVA (one factor) or F from the HC3 covariance (several).  If errors are not normal, it is
Kruskal-Wallis (one factor) or a permutation of residuals (several).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from twinbed.analyses.anova.estimates import MOST_LEVELS
from twinbed.analyses.anova.model import Data
from twinbed.analyses.anova.result import Alternative, AssumptionCheck, Difference, Line, Term, term_text
from twinbed.statistics import anova, assumptions
from twinbed.statistics.anova import ROUNDS, Fit, Floats, Group
from twinbed.statistics.assumptions import Tested
from twinbed.statistics.distribution import f_tail, normal_quantile, t_quantile

LEVEL = 0.05
VARIANCES, NORMAL = "equal variances", "normal errors"
SEED = 20190221
"""The seed of permutations, so that the same data give the same p-value."""


def by_cell(of: Data) -> list[Floats]:
    """Return the centred values of each cell."""
    order = np.argsort(of.of.of_row, kind="stable")
    return list(np.split(of.of.centred[order], np.cumsum(of.of.counts.astype(int))[:-1]))


def groups(of: Data) -> list[Group]:
    """Return count, mean and variance of each cell."""
    return [
        Group(int(count), float(mean), float(within) / (count - 1) if count > 1 else 0.0)
        for count, mean, within in zip(of.of.counts, of.of.means, of.of.within, strict=True)
    ]


def checks(of: Data, residuals: Floats, error: float) -> tuple[AssumptionCheck, ...]:
    """Test equal variances by Brown-Forsythe and Bartlett, and normal errors."""
    if error <= 0:
        why = "all errors are 0"
        return AssumptionCheck(VARIANCES, "Brown-Forsythe", None, None, None, why), AssumptionCheck(
            NORMAL, "Shapiro-Wilk", None, None, None, why
        )
    cells = by_cell(of)
    repeated = sum(len(cell) > 1 for cell in cells)
    return (
        _check(
            VARIANCES,
            "Brown-Forsythe",
            assumptions.brown_forsythe(cells),
            "fewer than two cells have two values" if repeated < 2 else "no cell varies about its median",
        ),
        _check(
            VARIANCES,
            "Bartlett",
            assumptions.bartlett(cells),
            "fewer than two cells have two values" if repeated < 2 else "the values of some cell are all equal",
        ),
        _check(NORMAL, "Shapiro-Wilk", assumptions.normality(residuals), "fewer than three residuals"),
    )


def _check(assumption: str, test: str, tested: Tested | None, reason: str) -> AssumptionCheck:
    if tested is None:
        return AssumptionCheck(assumption, test, None, None, None, reason)
    return AssumptionCheck(assumption, tested.name, tested.statistic, tested.p, tested.p >= LEVEL)


def fails(checks: Sequence[AssumptionCheck], assumption: str) -> bool:
    """Return whether an assumption fails. The first possible test decides: Bartlett's also rejects for errors that are not
    normal."""
    known = [check for check in checks if check.assumption == assumption and check.holds is not None]
    return bool(known) and known[0].holds is False


def answers(of: Data, fit: Fit, terms: Sequence[Term], kind: str, unequal: bool, other: bool) -> Iterator[Alternative | str]:
    """Yield tests that do not need the failed assumptions, or a sentence for a test that is impossible."""
    positions = [of.positions(term) for term in terms]
    if len(of.factors) == 1:
        if unequal:
            welch = anova.welch_anova(groups(of))
            yield _alternative(terms[0], VARIANCES, welch) or "Welch's ANOVA is impossible: some level has no variance."
        if other:
            kruskal = anova.kruskal_wallis(by_cell(of))
            yield _alternative(terms[0], NORMAL, kruskal) or "Kruskal-Wallis's test is impossible: all values are equal."
        return
    if unequal:
        yield from _robust(of, fit, terms, kind)
    if other:
        for at, term in enumerate(terms):
            permuted = anova.permutation(of.of, positions, at, kind, SEED)
            if permuted is None:
                yield f"Residuals of {of.of.n} rows were not permuted: F tolerates errors of any kind with so many rows."
                return
            yield Alternative(term, f"permutation ({ROUNDS})", NORMAL, permuted.statistic, permuted.freedom, permuted.p)


def _robust(of: Data, fit: Fit, terms: Sequence[Term], kind: str) -> Iterator[Alternative | str]:
    covariance = anova.robust_covariance(of.of, fit)
    if covariance is None:
        yield "F from the HC3 covariance is impossible: some cell has one value and its own parameter."
        return
    positions = [of.positions(term) for term in terms]
    for at, term in enumerate(terms):
        # Type I has no such test; the nearest adjusts for all terms that do not contain the term.
        f = anova.wald(fit, covariance, positions, at, "III" if kind == "III" else "II")
        if f is None:
            yield f"{':'.join(term)} has no F from the HC3 covariance: some of its cells do not vary."
            continue
        free = anova.freedom(positions[at], of.of.levels)
        yield Alternative(term, "F (HC3)", VARIANCES, f, (free, fit.error_freedom), f_tail(f, free, fit.error_freedom))


def _alternative(term: Term, instead_of: str, test: Tested | None) -> Alternative | None:
    return None if test is None else Alternative(term, test.name, instead_of, test.statistic, test.freedom, test.p)


UNBALANCED = 5e-4
"""Shares whose sum differs from 1 by more get a note."""
SIGNIFICANT = 0.05
WIDE = 10
"""Values that span more than this factor are worth a look at their logarithms, where variances differ."""


def of_model(of: Data, terms: Sequence[Term], errors: Line, lines: Sequence[Line], kind: str) -> Iterator[str]:
    """Yield notes on rows, errors, shares, interactions and factors with many levels."""
    yield from (f"Left out: {count} {reason}." for reason, count in of.frame.left_out.items())
    if errors.freedom <= 0:
        yield "There are no F, p or intervals: with as many parameters as values nothing estimates the errors. Add replicates."
    elif not errors.mean_square:
        yield "There are no F, p or intervals: values do not vary within cells, so errors are 0."
    whole = sum(line.share for line in lines) + errors.share
    if abs(whole - 1) > UNBALANCED:
        yield f"Shares sum to {whole * 100:.1f} %: in unbalanced cells sums of squares of type {kind} do not add up."
    strong = [line.term for line in lines if len(line.term) > 1 and line.p is not None and line.p < SIGNIFICANT]
    if strong:
        names = ", ".join(term_text(term) for term in strong)
        verb = "is" if len(strong) == 1 else "are"
        yield f"{names} {verb} significant: effects of single factors are averages over the others; look at the cells."
    many = [name for name in of.factors if (name,) in terms and len(of.frame.columns[name].levels) > MOST_LEVELS]
    if many:
        yield f"{', '.join(many)}: more than {MOST_LEVELS} levels, so only neighbours are compared."


def of_differences(differences: Sequence[Difference], errors: Line) -> Iterator[str]:
    """Yield a note on differences without an interval."""
    without = sum(difference.interval is None for difference in differences)
    if without and errors.mean_square:
        yield f"{without} of {len(differences)} differences have no interval: neither level varies, or one has a single value."


def of_variances(of: Data, errors: Line, checks: Sequence[AssumptionCheck], unequal: bool, confidence: float) -> Iterator[str]:
    """Yield notes on variances that differ."""
    if unequal and errors.mean_square and len(of.factors) == 1 and of.balanced:
        root = math.sqrt(errors.mean_square * 2 / float(of.of.counts[0]))
        t, z = (quantile * root for quantile in (t_quantile((1 + confidence) / 2, errors.freedom), normal_quantile(confidence)))
        yield (
            f"With equal variances (--variances equal), a difference of two means has a half-width of {t:.4g} (t), {z:.4g} (z)."
        )
    if not fails(checks, VARIANCES) or of.logarithm:
        return
    low, high = float(np.min(of.frame.y)), float(np.max(of.frame.y))
    if low > 0 and high / low > WIDE:
        yield f"Values span {low:g} to {high:g}: if their spread grows with the mean, use --log for more equal variances."
