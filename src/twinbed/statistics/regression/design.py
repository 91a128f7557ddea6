"""The design matrix of a formula: numeric variables as they are, categorical ones against their base level.

Coding is R's (Chambers and Hastie 1992, section 2.3): a categorical variable is coded against its base level where the term
without it is in the formula too, else by all its levels.  The exception is a:b with the constant alone, where R has a column
too many: it is coded against the cell of the base levels.  Columns of an interaction are products, the first factor's columns
varying fastest.  ``centre`` subtracts the mean of the rows that are used, or the value it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.evaluation import Array, Categorical, Column, Kind, Numeric, as_categorical, evaluate
from twinbed.statistics.regression.expression import BOX_COX, CATEGORICAL, Expression, base, calls, function, second, spelling
from twinbed.statistics.regression.formula import Formula

_LARGEST = 1e60


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of terms, bound to data. ``levels`` is empty for a numeric one; ``centres`` are by a call's text."""

    expression: Expression
    levels: tuple[str, ...]
    centres: Mapping[str, float]

    @property
    def source(self) -> str:
        """Return the column of a categorical factor, or the first of a numeric one."""
        return next(iter(self.expression.names), "")


@dataclass(frozen=True, slots=True)
class CodedTerm:
    """A term's factors, each with whether it is coded against its base level, and its columns in the matrix."""

    factors: tuple[tuple[Factor, bool], ...]
    against_cell: bool
    """True if the column of all base levels is left out and the others are compared with it: for a:b with only the constant."""
    columns: slice[int, int, None]
    labels: tuple[str, ...]

    @property
    def label(self) -> str:
        return " * ".join(_shown(factor.expression) for factor, _ in self.factors)

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the data's columns in it."""
        return tuple(dict.fromkeys(name for factor, _ in self.factors for name in factor.expression.names))


@dataclass(frozen=True, slots=True)
class Design:
    """A formula bound to data: ``matrix`` (n x p) and ``response`` (n) of the rows ``rows`` of the data, nothing missing."""

    formula: Formula
    terms: tuple[CodedTerm, ...]
    labels: tuple[str, ...]
    """The labels of the columns; the constant is first, as ``Constant``."""
    matrix: Array
    response: Array
    rows: NDArray[np.intp]
    missing: Mapping[str, int]
    """Rows of the data in which a used column is missing; only those above 0."""

    @property
    def constant(self) -> bool:
        return self.formula.constant

    def levels(self, name: str) -> tuple[str, ...]:
        """Return the levels of a column that the model takes as categorical, the base first; empty for any other."""
        for term in self.terms:
            for factor, _ in term.factors:
                if factor.levels and factor.source == name:
                    return factor.levels
        return ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the data's columns on the right side, in the order of the terms."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.sources))

    def at(self, values: Mapping[str, float | str]) -> Array:
        """Return the row (p) of the matrix where the data's columns have these values; all that the terms need are given."""
        blocks: list[Array] = [np.ones((1, 1))] if self.constant else []
        data: dict[str, Column] = {
            name: Numeric(np.array([value], dtype=float))
            if not isinstance(value, str)
            else Categorical(np.array([0]), (value,))
            for name, value in values.items()
        }
        blocks += [_term_columns(term.factors, data, np.array([0]), np.float64)[:, term.against_cell :] for term in self.terms]
        row: Array = np.hstack(blocks)[0]
        return row


def bind(
    formula: Formula, data: Mapping[str, Column], bases: Mapping[str, str] | None = None, extended: bool = False
) -> Design:
    """Bind a formula to data. Raises RegressionError for what the data do not have or do not allow. ``bases`` gives base levels
    by column, over those in the formula; ``extended`` computes columns in extended precision."""
    everything = [formula.response, *(factor for term in formula.terms for factor in term)]
    _check_columns(formula.names, data)
    given = [(factor.names[0], level) for factor in everything for call in calls(factor) if (level := base(call)) is not None]
    bases = {**(bases or {}), **dict(given)}
    rows, missing = _complete(formula.names, data)
    kind = np.longdouble if extended else np.float64
    response = _response(formula, data, rows, kind)
    factors = _factors(formula, data, rows, bases)
    _check_bases(bases, factors)
    terms: list[CodedTerm] = []
    blocks: list[Array] = [np.ones((len(rows), 1), dtype=kind)] if formula.constant else []
    labels = ["Constant"] if formula.constant else []
    known = {frozenset[str]()} if formula.constant else set()
    known |= {frozenset(map(str, term)) for term in formula.terms}
    for term in formula.terms:
        own = frozenset(map(str, term))
        coded = tuple((factors[str(factor)], own - {str(factor)} in known) for factor in term)
        against_cell = False
        if all(factor.levels and not against for factor, against in coded):
            # All indicators of the term add up to the constant, whether or not that is a column.
            against_cell = frozenset() in known and not any(other < own for other in known if other)
            known.add(frozenset())
        shown = _labels(coded)[against_cell:]
        terms.append(CodedTerm(coded, against_cell, slice(len(labels), len(labels) + len(shown)), shown))
        blocks.append(_term_columns(coded, data, rows, kind)[:, against_cell:])
        labels += shown
    if not blocks:
        raise RegressionError("the formula has no term and no constant", "give at least one")
    matrix = np.hstack(blocks)
    _check_size([str(formula.response), *labels], [response, *matrix.T])
    return Design(formula, tuple(terms), tuple(labels), matrix, response, rows, missing)


def _check_size(labels: Sequence[str], columns: Sequence[Array]) -> None:
    """Raise RegressionError if sums of squares, or of powers, would leave a double's range."""
    for label, column in zip(labels, columns, strict=True):
        largest = float(np.max(np.abs(column)))
        if largest > _LARGEST or 0 < largest < 1 / _LARGEST:
            raise RegressionError(
                f"{label} has values of size {largest:.0e}, which doubles cannot square", "give it in another unit"
            )


def _check_columns(used: Sequence[str], data: Mapping[str, Column]) -> None:
    for name in used:
        if name not in data:
            advice = f"there are {', '.join(data)}"
            raise RegressionError(f"the data have no column {name!r}", advice, name=name, known=tuple(data))


def _complete(used: Sequence[str], data: Mapping[str, Column]) -> tuple[NDArray[np.intp], dict[str, int]]:
    lost = {}
    for name in used:
        column = data[name]
        lost[name] = np.isnan(column.values) if isinstance(column, Numeric) else column.codes < 0
        if isinstance(column, Numeric) and np.isinf(column.values).any():
            raise RegressionError(f"column {name} holds an infinite value", "leave such rows out, or empty the value")
    gone = reduce(np.logical_or, lost.values())
    rows = np.flatnonzero(~gone)
    missing = {name: int(is_lost.sum()) for name, is_lost in lost.items() if is_lost.any()}
    if not len(rows):
        counts = ", ".join(f"{name} in {count}" for name, count in missing.items())
        raise RegressionError(
            f"no row has all of the formula's columns: missing are {counts} of {len(gone)} rows"
            if counts
            else "there is no row"
        )
    return rows, missing


def _factors(
    formula: Formula, data: Mapping[str, Column], rows: NDArray[np.intp], bases: Mapping[str, str]
) -> dict[str, Factor]:
    factors: dict[str, Factor] = {}
    for expression in (factor for term in formula.terms for factor in term):
        if str(expression) in factors:
            continue
        if levels := _levels(expression, data, rows, bases):
            if len(levels) == 1:
                raise RegressionError(
                    f"{expression} has only the level {levels[0]} in the rows that are used", "leave it out of the formula"
                )
            factors[str(expression)] = Factor(expression, levels, {})
        else:
            factors[str(expression)] = Factor(expression, (), _centres(expression, data, rows))
    return factors


def _centres(expression: Expression, data: Mapping[str, Column], rows: NDArray[np.intp]) -> dict[str, float]:
    """Return the value that each call of centre subtracts: the given one, else the mean of these rows."""
    centred = [call for call in calls(expression) if function(call) == "centre"]
    given = {spelling(call): second(call) for call in centred}
    means = {spelling(call): call.args[0] for call in centred if second(call) is None}
    return {
        text: float(np.mean(evaluate(means[text], data, rows, {}, np.float64))) if at is None else at
        for text, at in given.items()
    }


def _levels(
    expression: Expression, data: Mapping[str, Column], rows: NDArray[np.intp], bases: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the levels that occur, the base first; empty for a numeric factor."""
    name, plain = next(iter(expression.names), ""), isinstance(expression.tree, ast.Name)
    if expression.function != CATEGORICAL and not (plain and (isinstance(data[name], Categorical) or name in bases)):
        return ()
    column = as_categorical(data[name])
    occurring = np.flatnonzero(np.bincount(column.codes[rows], minlength=len(column.levels)))
    levels = tuple(column.levels[code] for code in occurring)
    base = bases.get(name)
    if base is None:
        return levels
    if base not in levels:
        why = "occurs in no row that is used" if base in column.levels else "does not occur"
        raise RegressionError(f"the base level {base!r} of {name} {why}", f"{name} has {', '.join(levels)}")
    return (base, *(level for level in levels if level != base))


def _check_bases(bases: Mapping[str, str], factors: Mapping[str, Factor]) -> None:
    leveled = {factor.source for factor in factors.values() if factor.levels}
    for name in bases:
        if name not in leveled:
            raise RegressionError(
                f"a base level is given for {name}, which is not a categorical variable of the formula",
                f"there are {', '.join(sorted(leveled)) or 'none'}",
            )


def _response(formula: Formula, data: Mapping[str, Column], rows: NDArray[np.intp], kind: Kind) -> Array:
    response = formula.response
    tree = response.tree
    if response.function == BOX_COX and isinstance(tree, ast.Call):
        tree = tree.args[0]
    if {CATEGORICAL, BOX_COX} & set(map(function, ast.walk(tree))):
        raise RegressionError(f"{response} cannot be a response", "it is a number, such as rate or log(rate)")
    values = evaluate(tree, data, rows, _centres(response, data, rows), kind)
    if values.ndim == 0 or np.all(values == values[0]):
        raise RegressionError(
            f"the response {formula.response} is the same in all {len(rows)} rows: {float(np.ravel(values)[0]):g}",
            "there is nothing to explain",
        )
    return values


def _term_columns(
    factors: Sequence[tuple[Factor, bool]], data: Mapping[str, Column], rows: NDArray[np.intp], kind: Kind
) -> Array:
    product: Array | None = None
    for factor, against_base in factors:
        block = _factor_columns(factor, against_base, data, rows, kind)
        if product is None:
            product = block
        else:
            product = (block[:, :, None] * product[:, None, :]).reshape(len(rows), -1)
    assert product is not None
    return product


def _factor_columns(
    factor: Factor, against_base: bool, data: Mapping[str, Column], rows: NDArray[np.intp], kind: Kind
) -> Array:
    if not factor.levels:
        values = evaluate(factor.expression.tree, data, rows, factor.centres, kind)
        return np.broadcast_to(values, (len(rows),))[:, None]
    column = as_categorical(data[factor.source])
    position = {level: index for index, level in enumerate(factor.levels)}
    codes = np.array([position.get(level, -1) for level in column.levels], dtype=np.intp)[column.codes[rows]]
    chosen = range(1 if against_base else 0, len(factor.levels))
    return np.stack([codes == index for index in chosen], axis=1).astype(kind)


def _labels(factors: Sequence[tuple[Factor, bool]]) -> tuple[str, ...]:
    labels = [""]
    for factor, against_base in factors:
        shown = _shown(factor.expression)
        own = [f"{shown} {level}" for level in factor.levels[1 if against_base else 0 :]] if factor.levels else [shown]
        labels = [f"{before} * {label}" if before else label for label in own for before in labels]
    return tuple(labels)


def _shown(expression: Expression) -> str:
    """Return the text without brackets that only mark: C(host) is host, I(x^2) is x^2."""
    return expression.argument if expression.function in (CATEGORICAL, "I") else expression.text
