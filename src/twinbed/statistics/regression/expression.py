"""The parts of a formula: names, numbers, calls and arithmetic, each with its position in the formula.

``str`` of an expression is its only spelling: two expressions are the same variable if their texts are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

FUNCTIONS = ("log", "log2", "log10", "exp", "sqrt", "abs", "I", "centre")
"""Functions of one number; ``centre`` may have the value to centre at as a second argument."""
CATEGORICAL = "C"
BOX_COX = "boxcox"


@dataclass(frozen=True, slots=True)
class Name:
    """A column of the data."""

    name: str
    position: int = 0

    def __str__(self) -> str:
        return self.name if self.name.replace(".", "_").isidentifier() else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Number:
    value: float
    position: int = 0

    def __str__(self) -> str:
        return f"{self.value:.15g}"


@dataclass(frozen=True, slots=True)
class Operation:
    """``left`` + - * / ^ ``right``; a sign is 0 - right."""

    operator: str
    left: Expression
    right: Expression
    position: int = 0

    def __str__(self) -> str:
        return "".join((_inner(self.left), self.operator if self.operator == "^" else f" {self.operator} ", _inner(self.right)))


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of FUNCTIONS, of C or of boxcox. ``base`` is the base level of C; ``at`` what centre centres at or boxcox's
    lambda."""

    function: str
    argument: Expression
    at: float | None = None
    base: str | None = None
    position: int = 0

    def __str__(self) -> str:
        rest = "" if self.at is None else f", {self.at:.15g}"
        rest += "" if self.base is None else f", base={self.base}"
        return f"{self.function}({self.argument}{rest})"


Expression = Name | Number | Operation | Call


def _inner(expression: Expression) -> str:
    return f"({expression})" if isinstance(expression, Operation) else str(expression)


def names(expression: Expression) -> Iterator[str]:
    """The columns in an expression, in the order of the text."""
    if isinstance(expression, Name):
        yield expression.name
    elif isinstance(expression, Call):
        yield from names(expression.argument)
    elif isinstance(expression, Operation):
        yield from names(expression.left)
        yield from names(expression.right)


def calls(expression: Expression) -> Iterator[Call]:
    """Every call in an expression, outer ones first."""
    if isinstance(expression, Call):
        yield expression
        yield from calls(expression.argument)
    elif isinstance(expression, Operation):
        yield from calls(expression.left)
        yield from calls(expression.right)
