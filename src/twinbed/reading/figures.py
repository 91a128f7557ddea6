"""Numbers in tools' texts: read in full or not at all, and never a NaN, an infinity or a number of hundreds of digits."""

from __future__ import annotations

import math
import re

_COUNT = re.compile(r"[0-9]{1,18}")
_REAL = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]{1,19})?(?:[eE][+-]?[0-9]{1,3})?")


def count(text: str) -> int | None:
    """A whole number from 0 up, in ASCII digits, of at most 64 bits with a sign; None where it is none."""
    return int(text) if _COUNT.fullmatch(text) else None


def real(text: str) -> float | None:
    """A decimal number with a point; None where it is none, or not finite."""
    number = float(text) if _REAL.fullmatch(text) else math.inf
    return number if math.isfinite(number) else None


def of_json(value: object) -> float | None:
    """A number that JSON gave as one; None for all else. Texts are no numbers there."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and abs(value) >= 10**20:
        return None
    return float(value) if math.isfinite(value) else None
