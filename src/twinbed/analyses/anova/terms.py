"""The terms of a model of factors, from a formula as R and statsmodels read it (``statistics/regression/formula``).

``a + b`` is both; ``a:b`` is their interaction; ``a * b`` is ``a + b + a:b``; ``(a + b + c)^2`` is all up to pairs; ``- a:b``
leaves a term out.  A response may stand before ``~``, as ``y`` or ``log(y)``.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.analyses.anova.result import Term
from twinbed.model.error import TwinbedError
from twinbed.statistics.regression.error import FormulaError
from twinbed.statistics.regression.expression import read_expression
from twinbed.statistics.regression.formula import read_terms


@dataclass(frozen=True, slots=True)
class Formula:
    """``response`` None where there is none; ``logarithm`` whether it is log(response)."""

    response: str | None
    logarithm: bool
    terms: tuple[Term, ...]
    """Sorted by order, then as written."""

    @property
    def factors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for term in self.terms for name in term))


def parse(text: str) -> Formula:
    """Read a formula. Raises TwinbedError where the text is none."""
    left, tilde, _ = text.rpartition("~")
    try:
        response = read_expression(text, 0, len(left)) if tilde else None
        terms = [term for term in read_terms(text, len(left) + len(tilde)).values() if term]
        inner = response.tree.args[0] if response and isinstance(response.tree, ast.Call) else response and response.tree
        if response is not None and (response.function not in ("", "log") or not isinstance(inner, ast.Name)):
            raise FormulaError("a response is y or log(y)", text, 0)
        if not terms:
            raise FormulaError("it has no terms", text, len(text), "such as testbed * payload, or a + b + a:b")
        for factor in itertools.chain(*terms):
            if not isinstance(factor.tree, ast.Name):
                raise FormulaError(f"{factor} is no factor", text, factor.position, "a factor is a column")
    except FormulaError as error:
        raise TwinbedError(error.message, advice=error.advice or "such as testbed * payload, or a + b + a:b") from error
    places: dict[str, int] = {}
    for each in sorted(itertools.chain(*terms), key=lambda factor: factor.position):
        places.setdefault(each.names[0], each.position)
    ordered = [tuple(sorted((each.names[0] for each in term), key=places.__getitem__)) for term in sorted(terms, key=len)]
    return Formula(response.names[0] if response else None, bool(response and response.function == "log"), tuple(ordered))


def factorial(factors: Sequence[str], highest: int) -> tuple[Term, ...]:
    """Return all main effects and interactions of up to ``highest`` factors."""
    return tuple(term for size in range(1, highest + 1) for term in itertools.combinations(factors, size))
