"""Columns of data, and the values of a formula's expressions in their rows.

No value that is not finite is accepted: the logarithm of a value not above 0, a division by 0 or an overflow is an error that
names the first such row.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.expression import BOX_COX, CATEGORICAL, function, spelling

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
    """Each level as a number, such as a size in bytes, for use within a function; None if levels are no numbers."""


Column = Numeric | Categorical


def as_categorical(column: Column) -> Categorical:
    """Return the column as levels: each number of a numeric column is a level."""
    if isinstance(column, Categorical):
        return column
    values, codes = np.unique(column.values, return_inverse=True)
    known = ~np.isnan(values)
    return Categorical(np.where(known[codes], codes, -1), tuple(f"{value:.15g}" for value in values[known]))


def evaluate(
    tree: ast.expr, data: Mapping[str, Column], rows: NDArray[np.intp], centres: Mapping[str, float], kind: Kind
) -> Array:
    """Return the values of a numeric expression in these rows; ``centres`` are by the text of the centred part."""
    if isinstance(tree, ast.Name):
        return _numbers(tree.id, data[tree.id], rows).astype(kind)
    if isinstance(tree, ast.Call):
        return _called(tree, evaluate(tree.args[0], data, rows, centres, kind), rows, centres)
    if isinstance(tree, ast.UnaryOp):
        inner = evaluate(tree.operand, data, rows, centres, kind)
        return np.asarray(-inner if isinstance(tree.op, ast.USub) else inner)
    if isinstance(tree, ast.BinOp):
        left, right = (evaluate(side, data, rows, centres, kind) for side in (tree.left, tree.right))
        with np.errstate(all="ignore"):
            return _finite(_OPERATIONS[type(tree.op)](left, right), tree, rows)
    return np.asarray(ast.literal_eval(tree), dtype=kind)


def _numbers(name: str, column: Column, rows: NDArray[np.intp]) -> Array:
    if isinstance(column, Numeric):
        return column.values[rows]
    if column.numbers is not None:
        return np.array(column.numbers, dtype=np.float64)[column.codes[rows]]
    some = ", ".join(column.levels[:3])
    raise RegressionError(
        f"column {name} is not numeric (it holds {some}{', ...' if len(column.levels) > 3 else ''})",
        "a variable with levels may only be a term of its own on the right side",
    )


def _power(left: Array, right: Array) -> Array:
    # Multiplication is exact for a whole power of what doubles hold exactly, and quicker.
    if right.ndim == 0 and right == int(right) and 1 <= right <= 16:
        return reduce(np.multiply, [left] * int(right))
    return np.asarray(np.power(left, right))


_OPERATIONS: Mapping[type[ast.operator], Callable[[Array, Array], Array]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}


def _called(call: ast.Call, inner: Array, rows: NDArray[np.intp], centres: Mapping[str, float]) -> Array:
    name = function(call)
    if name in ("log", "log2", "log10") and np.any(inner <= 0):
        bad = np.flatnonzero(np.atleast_1d(inner) <= 0)
        raise RegressionError(
            f"{spelling(call)} needs values above 0: {len(bad)} of {inner.size} are not, the first in row {rows[bad[0]] + 1} "
            f"({float(np.atleast_1d(inner)[bad[0]]):g})",
            "a 0 is often a failed or empty measurement: leave such rows out, or use the untransformed response",
        )
    if name in (CATEGORICAL, BOX_COX):
        raise RegressionError(f"{name} cannot stand within another function", "make it a term of its own")
    if name == "centre":
        return np.asarray(inner - inner.dtype.type(centres[spelling(call)]))
    if name == "I":
        return inner
    with np.errstate(all="ignore"):
        return _finite(getattr(np, name)(inner), call, rows)


def _finite(values: Array, tree: ast.expr, rows: NDArray[np.intp]) -> Array:
    bad = np.flatnonzero(~np.isfinite(np.atleast_1d(values)))
    if len(bad):
        raise RegressionError(f"{spelling(tree)} is not a finite number in {len(bad)} rows, the first row {rows[bad[0]] + 1}")
    return np.asarray(values)
