"""How far terms explain each other: variance inflation factors, and for terms of several columns the generalised one.

VIF_j = 1 / (1 - R_j^2); GVIF = det(R11) det(R22) / det(R), R the correlations of the columns, R11 those of a term, R22 of all
others (Fox and Monette 1992).  GVIF^(1/(2 df)) is comparable between terms: for one column it is sqrt(VIF).

They are computed for the model *before* interactions and powers. Interactions depend on their own parts by construction, so a
factor for them says nothing (see ``first_order``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from twinbed.statistics.regression.design import CodedTerm
from twinbed.statistics.regression.evaluation import Array
from twinbed.statistics.regression.expression import Expression
from twinbed.statistics.regression.formula import Formula

USUAL_LIMIT = 5.0
"""Terms with a larger VIF are usually called collinear; the bound of GVIF^(1/(2 df)) is its root."""
_SINGULAR = 1e13


@dataclass(frozen=True, slots=True)
class Inflation:
    """The inflation of one term with ``columns`` columns."""

    term: str
    columns: int
    gvif: float

    @property
    def scaled(self) -> float:
        """Return GVIF^(1/(2 df)): how many times as long collinearity makes the term's intervals."""
        return float(self.gvif ** (1 / (2 * self.columns)))


def first_order(formula: Formula) -> Formula:
    """Return the formula without interactions and without a second function of a column that it has already."""
    variables: dict[str, Expression] = {}
    known: set[str] = set()
    for expression in (factor for term in formula.terms for factor in term):
        sources = set(expression.names)
        if str(expression) not in variables and not sources <= known:
            variables[str(expression)] = expression
            known |= sources
    text = f"{formula.response} ~ {' + '.join(variables)}"
    return replace(formula, text=text, terms=tuple((expression,) for expression in variables.values()), constant=True)


def inflation(terms: Sequence[CodedTerm], matrix: Array) -> list[Inflation]:
    """Return the inflation of each term of a first-order design (n x p, with a constant first). Empty for fewer than two
    terms, or where they are collinear, even if the whole model's terms are not."""
    if len(terms) < 2:
        return []
    columns = matrix[:, 1:] - matrix[:, 1:].mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
    if np.any(lengths == 0):
        return []
    columns /= lengths
    correlations = columns.T @ columns
    if np.linalg.cond(correlations.astype(np.float64)) > _SINGULAR:
        return []
    whole = _log_determinant(correlations)
    factors = []
    for term in terms:
        own = np.arange(term.columns.start - 1, term.columns.stop - 1)
        rest = np.setdiff1d(np.arange(len(correlations)), own)
        parts = _log_determinant(correlations[np.ix_(own, own)]) + _log_determinant(correlations[np.ix_(rest, rest)])
        factors.append(Inflation(term.label, len(own), float(np.exp(parts - whole))))
    return factors


def _log_determinant(matrix: Array) -> float:
    return float(np.linalg.slogdet(matrix.astype(np.float64))[1])
