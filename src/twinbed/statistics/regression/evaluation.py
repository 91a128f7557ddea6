"""Columns of data, and the values of a formula's expressions in their rows.

No value that is not finite is accepted: the logarithm of a value not above 0, a division by 0 or an overflow is an error that
names the first such row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.expression import BOX_COX, CATEGORICAL, Call, Expression, Name, Number

Kind = type[np.float64] | type[np.longdouble]
"""Extended where a double would lose digits."""
Array = NDArray[np.float64 | np.longdouble]


@dataclass(frozen=True, slots=True)
class Numeric:
    """A column of numbers; nan where missing."""

    values: Array


@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of levels: ``codes`` index ``levels``, -1 where missing. The first level is the base."""

    codes: NDArray[np.intp]
    levels: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    """What each level is as a number, such as a size in bytes, for use within a function; None where they are none."""


Column = Numeric | Categorical


def as_categorical(column: Column) -> Categorical:
    """The column as levels: each number of a numeric column is a level."""
    if isinstance(column, Categorical):
        return column
    values, codes = np.unique(column.values, return_inverse=True)
    there = ~np.isnan(values)
    return Categorical(np.where(there[codes], codes, -1), tuple(f"{value:.15g}" for value in values[there]))


def evaluate(
    expression: Expression, data: Mapping[str, Column], rows: NDArray[np.intp], centres: Mapping[str, float], kind: Kind
) -> Array:
    """The values of a numeric expression in these rows."""
    if isinstance(expression, Number):
        return np.asarray(expression.value, dtype=kind)
    if isinstance(expression, Name):
        column = data[expression.name]
        if isinstance(column, Categorical) and column.numbers is not None:
            return np.array(column.numbers, dtype=np.float64)[column.codes[rows]].astype(kind)
        if isinstance(column, Categorical):
            some = ", ".join(column.levels[:3])
            raise RegressionError(
                f"column {expression.name} is not numeric (it holds {some}{', ...' if len(column.levels) > 3 else ''})",
                "only a variable on the right side may have levels, and stands there by itself",
            )
        return column.values[rows].astype(kind)
    if isinstance(expression, Call):
        inner = evaluate(expression.argument, data, rows, centres, kind)
        return _called(expression, inner, rows, centres)
    left, right = (evaluate(side, data, rows, centres, kind) for side in (expression.left, expression.right))
    with np.errstate(all="ignore"):
        if expression.operator == "+":
            result = left + right
        elif expression.operator == "-":
            result = left - right
        elif expression.operator == "*":
            result = left * right
        elif expression.operator == "/":
            result = left / right
        else:
            result = _power(left, right)
    return _finite(result, expression, rows)


def _power(left: Array, right: Array) -> Array:
    # Multiplication is exact for a whole power of what doubles hold exactly, and quicker.
    if right.ndim == 0 and right == int(right) and 1 <= right <= 16:
        return reduce(np.multiply, [left] * int(right))
    return np.asarray(np.power(left, right))


def _called(call: Call, inner: Array, rows: NDArray[np.intp], centres: Mapping[str, float]) -> Array:
    if call.function in ("log", "log2", "log10") and np.any(inner <= 0):
        bad = np.flatnonzero(np.atleast_1d(inner) <= 0)
        raise RegressionError(
            f"{call} needs values above 0: {len(bad)} of {inner.size} are not, the first in row {rows[bad[0]] + 1} "
            f"({float(np.atleast_1d(inner)[bad[0]]):g})",
            "a 0 is often a failed or empty measurement: leave such rows out if so, or take the response as it is",
        )
    if call.function in (CATEGORICAL, BOX_COX):
        raise RegressionError(f"{call.function} cannot stand within another function", "give it by itself")
    if call.function == "centre":
        return np.asarray(inner - inner.dtype.type(centres[str(call)]))
    if call.function == "I":
        return inner
    with np.errstate(all="ignore"):
        return _finite(getattr(np, call.function)(inner), call, rows)


def _finite(values: Array, expression: Expression, rows: NDArray[np.intp]) -> Array:
    bad = np.flatnonzero(~np.isfinite(np.atleast_1d(values)))
    if len(bad):
        raise RegressionError(f"{expression} is not a finite number in {len(bad)} rows, the first row {rows[bad[0]] + 1}")
    return np.asarray(values)
