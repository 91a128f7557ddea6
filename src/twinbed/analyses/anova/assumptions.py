"""Whether the assumptions hold, and what to read where they do not.

Variances are compared between cells; normality is tested over all residuals; each at LEVEL.  Where variances are unequal, the
answer is Welch's ANOVA (one factor) or F from the HC3 covariance (several).  Where errors are not normal, it is Kruskal-Wallis
(one factor) or a permutation of residuals (several).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from twinbed.analyses.anova.model import Data
from twinbed.analyses.anova.result import Alternative, AssumptionCheck, Term
from twinbed.statistics import anova, assumptions
from twinbed.statistics.anova import ROUNDS, Fit, Floats, Group
from twinbed.statistics.assumptions import Tested
from twinbed.statistics.distribution import f_tail

LEVEL = 0.05
VARIANCES, NORMAL = "equal variances", "normal errors"
SEED = 20190221
"""The seed of permutations, so that the same data give the same p-value."""


def by_cell(of: Data) -> list[Floats]:
    """Return the centred values of each cell."""
    order = np.argsort(of.of.of_row, kind="stable")
    return list(np.split(of.of.centred[order], np.cumsum(of.of.counts.astype(int))[:-1]))


def groups(of: Data) -> list[Group]:
    """Return the cells, summed up."""
    return [
        Group(int(count), float(mean), float(within) / (count - 1) if count > 1 else 0.0)
        for count, mean, within in zip(of.of.counts, of.of.means, of.of.within, strict=True)
    ]


def checks(of: Data, residuals: Floats, error: float) -> tuple[AssumptionCheck, ...]:
    """Test equal variances by Brown-Forsythe and Bartlett, normal errors."""
    if error <= 0:
        why = "the errors are all 0"
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
            "fewer than two cells have two values" if repeated < 2 else "some cell does not vary at all",
        ),
        _check(NORMAL, "Shapiro-Wilk", assumptions.normality(residuals), "fewer than three residuals"),
    )


def _check(assumption: str, test: str, tested: Tested | None, reason: str) -> AssumptionCheck:
    if tested is None:
        return AssumptionCheck(assumption, test, None, None, None, reason)
    return AssumptionCheck(assumption, tested.name, tested.statistic, tested.p, tested.p >= LEVEL)


def fails(checks: Sequence[AssumptionCheck], assumption: str) -> bool:
    """Return whether an assumption fails. The first test that could be made decides: Bartlett's also rejects for errors that
    are not normal."""
    known = [each for each in checks if each.assumption == assumption and each.holds is not None]
    return bool(known) and known[0].holds is False


def answers(of: Data, fit: Fit, terms: Sequence[Term], kind: str, unequal: bool, other: bool) -> Iterator[Alternative | str]:
    """Tests that do without what fails; a sentence in place of one that cannot be made."""
    positions = [of.positions(term) for term in terms]
    if len(of.factors) == 1:
        if unequal:
            welch = anova.welch_anova(groups(of))
            yield _alternative(terms[0], VARIANCES, welch) or "Welch's ANOVA cannot be made: some level has no variance."
        if other:
            kruskal = anova.kruskal_wallis(by_cell(of))
            yield _alternative(terms[0], NORMAL, kruskal) or "Kruskal-Wallis's test cannot be made: all values are the same."
        return
    if unequal:
        yield from _robust(of, fit, terms, kind)
    if other:
        for at, term in enumerate(terms):
            permuted = anova.permutation(of.of, positions, at, kind, SEED)
            if permuted is None:
                yield f"Residuals were not permuted: that takes too long with {of.of.n} rows, where F bears errors of any kind."
                return
            yield Alternative(term, f"permutation ({ROUNDS})", NORMAL, permuted.statistic, permuted.freedom, permuted.p)


def _robust(of: Data, fit: Fit, terms: Sequence[Term], kind: str) -> Iterator[Alternative | str]:
    covariance = anova.robust_covariance(of.of, fit)
    if covariance is None:
        yield "F from the HC3 covariance cannot be made: some cell has one value and its own parameter."
        return
    positions = [of.positions(term) for term in terms]
    for at, term in enumerate(terms):
        # Type I has no such test; the nearest is that after all terms that do not contain the term.
        f = anova.wald(fit, covariance, positions, at, "III" if kind == "III" else "II")
        if f is None:
            yield f"{':'.join(term)} has no F from the HC3 covariance: some of its cells do not vary."
            continue
        free = anova.freedom(positions[at], of.of.levels)
        yield Alternative(term, "F (HC3)", VARIANCES, f, (free, fit.error_freedom), f_tail(f, free, fit.error_freedom))


def _alternative(term: Term, instead_of: str, test: Tested | None) -> Alternative | None:
    return None if test is None else Alternative(term, test.name, instead_of, test.statistic, test.freedom, test.p)
