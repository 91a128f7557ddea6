"""Numbers in tools' texts: read in full or not at all, and never a NaN, an infinity or a number of hundreds of digits."""

from __future__ import annotations

import re

_COUNT = re.compile(r"[0-9]{1,18}")
_REAL = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?")
_MOST = 1e30
"""Nothing measured is beyond it, and a product with a unit's factor might be infinite."""


def count(text: str) -> int | None:
    """A whole number from 0 up, in ASCII digits, of at most 64 bits with a sign; None where it is none."""
    return int(text) if _COUNT.fullmatch(text) else None


def real(text: str) -> float | None:
    """A decimal number with a point, never a comma; None where it is none, or larger than anything measured."""
    number = float(text) if _REAL.fullmatch(text) else _MOST
    return number if abs(number) < _MOST else None


def of_json(value: object) -> float | None:
    """Return a number that JSON gave as one, as ``real``; None for all else: neither texts nor true and false are numbers."""
    if type(value) is float or type(value) is int:
        return float(value) if -_MOST < value < _MOST else None
    return None


def count_of_json(value: object) -> int | None:
    """A whole number from 0 up that JSON gave as a number, of at most 18 digits."""
    number = of_json(value)
    return int(number) if number is not None and 0 <= number < 1e18 and number == int(number) else None
