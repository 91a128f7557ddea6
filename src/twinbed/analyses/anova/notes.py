"""Notes on an analysis, one sentence each: rows left out, what could not be computed, how to read the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from twinbed.analyses.anova import assumptions, differences
from twinbed.analyses.anova.model import Data
from twinbed.analyses.anova.result import AssumptionCheck, Difference, Line, Term, term_text
from twinbed.statistics.distribution import normal_quantile, t_quantile

UNBALANCED = 5e-4
"""Shares whose sum misses 1 by more get a note."""
SIGNIFICANT = 0.05
WIDE = 10
"""Values that span more than this factor are worth a look at their logarithms, where variances differ."""


def of_model(of: Data, terms: Sequence[Term], errors: Line, lines: Sequence[Line], kind: str) -> Iterator[str]:
    """Say what there is about rows, errors, shares, interactions and factors of many levels."""
    yield from (f"Left out: {count} {reason}." for reason, count in of.frame.left_out.items())
    if errors.freedom <= 0:
        yield "There are as many parameters as values, so nothing estimates the errors: no F, p or intervals. Replicates would."
    elif not errors.mean_square:
        yield "Values do not vary within cells, so there are no errors to hold effects against: no F, p or intervals."
    whole = sum(line.share for line in lines) + errors.share
    if abs(whole - 1) > UNBALANCED:
        yield f"Shares sum to {whole * 100:.1f} %: cells are not balanced, and sums of squares of type {kind} do not add up."
    strong = [line.term for line in lines if len(line.term) > 1 and line.p is not None and line.p < SIGNIFICANT]
    if strong:
        names = ", ".join(term_text(term) for term in strong)
        verb = "is" if len(strong) == 1 else "are"
        yield f"{names} {verb} significant: what is said of one factor there is an average over the others; look at the cells."
    many = [name for name in of.factors if (name,) in terms and len(of.frame.columns[name].levels) > differences.MOST_LEVELS]
    if many:
        yield f"{', '.join(many)}: more than {differences.MOST_LEVELS} levels, so only neighbours are compared."


def of_differences(differences: Sequence[Difference], errors: Line) -> Iterator[str]:
    """Say what there is about differences without an interval."""
    without = sum(each.interval is None for each in differences)
    if without and errors.mean_square:
        yield f"{without} of {len(differences)} differences have no interval: neither level varies, or one has a single value."


def of_variances(of: Data, errors: Line, checks: Sequence[AssumptionCheck], unequal: bool, confidence: float) -> Iterator[str]:
    """Say what there is about variances that differ."""
    if unequal and errors.mean_square and len(of.factors) == 1 and of.balanced:
        root = math.sqrt(errors.mean_square * 2 / float(of.of.counts[0]))
        t, z = (quantile * root for quantile in (t_quantile((1 + confidence) / 2, errors.freedom), normal_quantile(confidence)))
        yield (
            f"Were variances equal, a difference of two means would have the half width {t:.4g} (t), {z:.4g} (z); "
            "--variances equal takes them so."
        )
    if not assumptions.fails(checks, assumptions.VARIANCES) or of.logarithm:
        return
    low, high = float(np.min(of.frame.y)), float(np.max(of.frame.y))
    if low > 0 and high / low > WIDE:
        yield f"Values span {low:g} to {high:g}: if their spread grows with them, --log makes the errors more alike."
