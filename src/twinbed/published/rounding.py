"""Numbers as printed, and arithmetic over all numbers that are printed alike.

A printed number means all numbers that round to it: 0.024 means 0.0235 to 0.0245.  ``Range`` holds such a set as exact
fractions.  A result computed from ranges contains the results of all inputs within them, and may contain more where an input
occurs twice (interval arithmetic; Moore, Kearfott & Cloud 2009).  A printed result outside of it therefore follows from
no inputs that round to the printed ones, and one inside of it may.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

_PRECISE = Context(prec=60)
_SLACK = Fraction(1, 10**50)
"""More than the relative error of a logarithm or root of 60 digits."""
_NUMBER = re.compile(r"(E?[+-])?(\d+(?:\.(\d*))?|\.(\d+))(?:e(\d))?")


@dataclass(frozen=True, slots=True)
class Range:
    """All numbers from ``low`` to ``high``."""

    low: Fraction
    high: Fraction

    @classmethod
    def exactly(cls, value: Fraction | int) -> Range:
        return cls(Fraction(value), Fraction(value))

    @property
    def middle(self) -> Fraction:
        return (self.low + self.high) / 2

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __sub__(self, other: Range) -> Range:
        return self + -other

    def __mul__(self, other: Range) -> Range:
        ends = [own * theirs for own in (self.low, self.high) for theirs in (other.low, other.high)]
        return Range(min(ends), max(ends))

    def __truediv__(self, other: Range) -> Range:
        """Raises ZeroDivisionError where the divisor may be 0."""
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError("the divisor may be 0")
        return self * Range(1 / other.high, 1 / other.low)

    def __abs__(self) -> Range:
        if self.low <= 0 <= self.high:
            return Range(Fraction(0), max(-self.low, self.high))
        return self if self.low > 0 else -self

    def squared(self) -> Range:
        size = abs(self)
        return Range(size.low**2, size.high**2)

    def overlaps(self, other: Range) -> bool:
        return self.low <= other.high and other.low <= self.high


HUNDRED = Range.exactly(100)


def total(ranges: list[Range]) -> Range:
    """Return the sum."""
    return Range(sum((term.low for term in ranges), Fraction(0)), sum((term.high for term in ranges), Fraction(0)))


def root(value: Range) -> Range:
    """Return the square root; 0 below 0."""
    return _outward(value, lambda number: max(number, Decimal(0)).sqrt(_PRECISE))


def exponential(value: Range) -> Range:
    return _outward(value, lambda number: number.exp(_PRECISE))


def _outward(value: Range, function: Callable[[Decimal], Decimal]) -> Range:
    """Apply a rising function to both ends, widened by the digits that it cuts off."""
    low, high = (Fraction(function(_PRECISE.divide(end.numerator, end.denominator))) for end in (value.low, value.high))
    return Range(low * (1 - _SLACK), high * (1 + _SLACK))


def parse(printed: str) -> tuple[Fraction, int] | None:
    """Return value and decimals of a printed number (``80,286``, ``.01``, ``E+5531`` as its power, ``94e1`` for 940 to tens).

    None for any other text.
    """
    match = _NUMBER.fullmatch(printed.replace(",", ""))
    if match is None:
        return None
    digits, tens = match[2], int(match[5] or 0)
    sign = -1 if match[1] and match[1].endswith("-") else 1
    return sign * Fraction(f"0{digits}" if digits.startswith(".") else digits) * 10**tens, len(
        match[3] or match[4] or ""
    ) - tens


def printed_range(value: Fraction, decimals: int) -> Range:
    """Return all numbers that round to the value at so many decimals, with both halves."""
    half = Fraction(1, 2) / Fraction(10) ** decimals
    return Range(value - half, value + half)


def rounds_to(value: Fraction, printed: Fraction, decimals: int) -> bool:
    """Return whether the value rounds to the printed one, halves either way."""
    allowed = printed_range(printed, decimals)
    return allowed.low <= value <= allowed.high


def shown(value: Fraction, decimals: int) -> str:
    """Return the value at so many decimals, half to even; below 0 decimals as whole tens."""
    scale = Fraction(10) ** decimals
    rounded = Fraction(round(value * scale)) / scale
    return f"{float(rounded):,.{max(decimals, 0)}f}".replace(",", "")


def significant(value: Fraction, digits: int = 6) -> str:
    """Return the value for the eye."""
    return f"{float(value):.{digits}g}" if abs(value) < 10**digits else f"{float(value):.0f}"


def evaluate(expression: str, *, rounded: bool) -> Range:
    """Evaluate a formula of numbers, ``+ - * / **`` and ``exp``.

    Exactly as displayed or, ``rounded``, with each number that has decimals as all numbers that round to it.
    """
    return _evaluate(ast.parse(expression, mode="eval").body, expression, rounded)


def _evaluate(node: ast.expr, text: str, rounded: bool) -> Range:
    match node:
        case ast.Constant():
            number = parse(ast.get_source_segment(text, node) or "")
            if number is None:
                raise ValueError(f"not a number in {text!r}")
            value, decimals = number
            return printed_range(value, decimals) if rounded and decimals else Range.exactly(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, text, rounded)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, power = _evaluate(left, text, rounded), _evaluate(right, text, False)
            return Range(base.low ** int(power.low), base.high ** int(power.low))
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _evaluate(left, text, rounded), _evaluate(right, text, rounded)
            match operator:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
                case ast.Div():
                    return a / b
        case ast.Call(func=ast.Name(id="exp"), args=[argument]):
            return exponential(_evaluate(argument, text, rounded))
    raise ValueError(f"not a formula: {text!r}")
