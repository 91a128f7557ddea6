"""Choose the model: the factors with their cells, the scale of the response, and the terms that the cells can separate.

Without a formula the model has every interaction with all its cells that leaves something to estimate the errors from.

A formula reads as in R and statsmodels (``statistics/regression/formula``): ``a + b`` is both, ``a:b`` is their interaction.
With ``a * b`` it has both and the interaction, with ``(a + b + c)^2`` all up to pairs, and ``- a:b`` omits a term.  A response
may stand before ``~``, as ``y`` or ``log(y)``.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twinbed.analyses.anova.result import Term, term_text
from twinbed.metrics.metric import Scale
from twinbed.model.error import TwinbedError
from twinbed.model.run import level_text
from twinbed.observations.frame import Frame
from twinbed.statistics import anova
from twinbed.statistics.anova import Aliased, Cells
from twinbed.statistics.regression.error import FormulaError
from twinbed.statistics.regression.expression import read_expression
from twinbed.statistics.regression.formula import read_terms


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula. ``response``: None without one; ``logarithm``: True for log(response)."""

    response: str | None
    logarithm: bool
    terms: tuple[Term, ...]
    """Sorted by order, then by place in the formula."""

    @property
    def factors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for term in self.terms for name in term))


def parse(text: str) -> Formula:
    """Read a formula. Raises TwinbedError if the text is none."""
    left, tilde, _ = text.rpartition("~")
    try:
        response = read_expression(text, 0, len(left)) if tilde else None
        terms = [term for term in read_terms(text, len(left) + len(tilde)).values() if term]
        inner = response.tree.args[0] if response and isinstance(response.tree, ast.Call) else response and response.tree
        if response is not None and (response.function not in ("", "log") or not isinstance(inner, ast.Name)):
            raise FormulaError("the response must be y or log(y)", text, 0)
        if not terms:
            raise FormulaError("the formula has no terms", text, len(text), "such as testbed * payload, or a + b + a:b")
        for factor in itertools.chain(*terms):
            if not isinstance(factor.tree, ast.Name):
                raise FormulaError(f"{factor} is not a factor", text, factor.position, "a factor must be a column")
    except FormulaError as error:
        raise TwinbedError(error.message, advice=error.advice or "such as testbed * payload, or a + b + a:b") from error
    places: dict[str, int] = {}
    for occurrence in sorted(itertools.chain(*terms), key=lambda factor: factor.position):
        places.setdefault(occurrence.names[0], occurrence.position)
    ordered = [tuple(sorted((factor.names[0] for factor in term), key=places.__getitem__)) for term in sorted(terms, key=len)]
    return Formula(response.names[0] if response else None, bool(response and response.function == "log"), tuple(ordered))


def factorial(factors: Sequence[str], highest: int) -> tuple[Term, ...]:
    """Return all main effects and interactions of up to ``highest`` factors."""
    return tuple(term for size in range(1, highest + 1) for term in itertools.combinations(factors, size))


MOST_PARAMETERS = 1500
"""A model with more takes minutes."""
LARGEST = 1e145
"""The sum of squares of larger values overflows, and of values below the inverse vanishes."""
MOST_NAMED = 5
"""Empty cells that a message names."""


@dataclass(frozen=True, slots=True)
class Data:
    """The response on the model's scale, by cell."""

    frame: Frame
    factors: tuple[str, ...]
    logarithm: bool
    of: Cells

    def positions(self, term: Term) -> anova.Term:
        return tuple(sorted(self.factors.index(name) for name in term))

    def term(self, positions: anova.Term) -> Term:
        return tuple(self.factors[at] for at in positions)

    @property
    def full(self) -> bool:
        """Return whether every combination of levels has a value."""
        return len(self.of.codes) == math.prod(self.of.levels)

    @property
    def balanced(self) -> bool:
        return self.full and len(set(self.of.counts.tolist())) == 1


def data(frame: Frame, factors: Sequence[str], logarithm: bool | None) -> tuple[Data, tuple[str, ...]]:
    """Return the data, and notes on their scale. ``logarithm`` None: yes for positive values of a ratio scale.

    Raises TwinbedError for factors or a response that cannot be analysed.
    """
    if not factors:
        raise TwinbedError(
            "no factor has two levels",
            advice=f"--factor NAME names one of {', '.join(frame.columns) or 'no columns'}",
        )
    columns = [frame.column(name) for name in factors]
    if len(frame) < 2:
        raise TwinbedError(f"{frame.source} has {len(frame)} usable rows", advice=_lost(frame) or "give at least two")
    for column in columns:
        if len(column.levels) < 2:
            raise TwinbedError(
                f"{column.name} has only one level: {level_text(column.levels[0])}",
                advice="omit it, since a factor needs two" + (f" ({_lost(frame)})" if _lost(frame) else ""),
            )
    chosen, notes = _scale(frame, logarithm)
    y = np.log(frame.y) if chosen else frame.y
    spread = float(np.max(y)) - float(np.min(y))
    if spread == 0:
        raise TwinbedError(
            f"{frame.response} is {frame.y[0]:g} in every row, so there is no variation", advice="choose another response"
        )
    if float(np.max(np.abs(y))) > LARGEST or spread < 1 / LARGEST:
        raise TwinbedError(f"{frame.response} is too large or too small to square", advice="use another unit")
    of = anova.cells(y, [column.codes for column in columns], [len(column.levels) for column in columns])
    return Data(frame, tuple(factors), chosen, of), notes


def _lost(frame: Frame) -> str:
    return "left out: " + ", ".join(f"{count} {reason}" for reason, count in frame.left_out.items()) if frame.left_out else ""


def _scale(frame: Frame, logarithm: bool | None) -> tuple[bool, tuple[str, ...]]:
    positive = float(np.min(frame.y)) > 0
    if logarithm and not positive:
        count = int(np.sum(frame.y <= 0))
        raise TwinbedError(
            f"{frame.response} has no logarithm in {count} of {len(frame)} rows, where it is 0 or less",
            advice="--no-log analyses the values themselves",
        )
    if logarithm is not None:
        return logarithm, ()
    if frame.scale is not Scale.RATIO:
        return False, ()
    if positive:
        return True, (
            "The natural logarithm is analysed, since the metric has a ratio scale: effects are factors, like the ratios of "
            "twinbed compare. --no-log analyses the values themselves.",
        )
    return False, ("The values themselves are analysed: some are 0 or less and have no logarithm.",)


def default_terms(of: Data) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    """Return the terms of the whole model, and notes on them."""
    count = len(of.factors)
    if of.full:
        replicated = of.of.n > len(of.of.codes)
        highest = count if replicated or count == 1 else count - 1
        while highest > 1 and _parameters(of, factorial(of.factors, highest)) > MOST_PARAMETERS:
            highest -= 1
        notes = []
        if not replicated and count > 1:
            notes.append(
                f"With one value a cell, the interaction {term_text(of.factors)} is taken as the errors; replicates would "
                "separate them."
            )
        if highest < count - (not replicated):
            notes.append(f"Interactions of more than {highest} factors are left out: the model would be too large.")
        return factorial(of.factors, highest), tuple(notes)
    return _estimable(of)


def _parameters(of: Data, terms: Sequence[Term]) -> int:
    return 1 + sum(anova.freedom(of.positions(term), of.of.levels) for term in terms)


def _estimable(of: Data) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    """Return the terms if cells are missing: main effects, and each interaction with all its cells that is not collinear with
    earlier terms."""
    kept = [(name,) for name in of.factors]
    check(of, kept)
    terms: list[Term] = list(kept)
    without: list[Term] = []
    for term in factorial(of.factors, len(of.factors))[len(kept) :]:
        nested = all(part in terms for part in factorial(term, len(term) - 1))
        trial = [*terms, term]
        if nested and not missing(of, term) and of.of.n > _parameters(of, trial) <= MOST_PARAMETERS and _free(of, trial):
            terms.append(term)
        else:
            without.append(term)
    if not without:
        return tuple(terms), ()
    names = ", ".join(term_text(term) for term in without[:MOST_NAMED]) + (" and more" if len(without) > MOST_NAMED else "")
    empty = math.prod(of.of.levels) - len(of.of.codes)
    return tuple(terms), (f"Left out: {names}; {empty} of {math.prod(of.of.levels)} cells have no value.",)


def _free(of: Data, terms: Sequence[Term]) -> bool:
    try:
        anova.fit(of.of, [of.positions(term) for term in terms])
    except Aliased:
        return False
    return True


def missing(of: Data, term: Term) -> list[tuple[int, ...]]:
    """Return the combinations of a term's levels that have no value."""
    at = list(of.positions(term))
    present = {tuple(int(code) for code in row) for row in of.of.codes[:, at]}
    return [combination for combination in np.ndindex(*(of.of.levels[factor] for factor in at)) if combination not in present]


def check(of: Data, terms: Sequence[Term]) -> None:
    """Check the terms. Raises TwinbedError if they are no hierarchy, too many, or collinear, and names them."""
    known = {frozenset(term) for term in terms}
    for term in terms:
        for part in factorial(term, len(term) - 1):
            if frozenset(part) not in known:
                raise TwinbedError(
                    f"the model has {term_text(term)} without {term_text(part)}",
                    advice=f"write {' * '.join(term)}, which includes both",
                )
    if _parameters(of, terms) > MOST_PARAMETERS:
        raise TwinbedError(
            f"the model has {_parameters(of, terms)} parameters, more than {MOST_PARAMETERS}", advice="name fewer terms"
        )
    for term in terms:
        if len(term) > 1 and (empty := missing(of, term)):
            raise TwinbedError(
                f"{term_text(term)} cannot be estimated: no value at {_named(of, term, empty)}",
                advice=f"omit {term_text(term)} and terms that contain it, or make the missing runs",
            )
    try:
        anova.fit(of.of, [of.positions(term) for term in terms])
    except Aliased as alias:
        own = term_text(of.term(alias.term))
        others = " and ".join(term_text(of.term(other)) for other in alias.others) or "the mean"
        raise TwinbedError(
            f"{own} and {others} cannot be separated: they always change together (they are collinear)",
            advice=f"omit {own}, or vary it independently of {others}",
        ) from alias


def _named(of: Data, term: Term, empty: Sequence[tuple[int, ...]]) -> str:
    names = [of.factors[at] for at in of.positions(term)]
    texts = [
        " ".join(f"{name}={level_text(of.frame.columns[name].levels[code])}" for name, code in zip(names, codes, strict=True))
        for codes in empty[:MOST_NAMED]
    ]
    return "; ".join(texts) + (f"; and {len(empty) - MOST_NAMED} more" if len(empty) > MOST_NAMED else "")
