"""Numbers as tools print them: read if they are plain, else None; nothing is guessed."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

from twinbed.model.format import FormatError

_REAL = re.compile(r"[+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
"""What a column of 64 bits holds."""
_MOST = 1e30
"""Beyond this nothing is measured; and products with a unit's factor stay finite."""


def real(text: str) -> float | None:
    """With a decimal point, never a comma. None for words, infinities and numbers that nothing measures."""
    if not _REAL.fullmatch(text):
        return None
    number = float(text)
    return number if abs(number) < _MOST else None


def whole(text: str) -> int | None:
    """Digits alone."""
    return int(text) if _WHOLE.fullmatch(text) else None


def plain(value: object) -> float | None:
    """A number of a JSON document; None for anything else, and as ``real``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _MOST else None


def count(value: object) -> int | None:
    """A count of a JSON document: a whole number of at most 18 digits."""
    number = plain(value)
    return int(number) if number is not None and 0 <= number < 1e18 and number == int(number) else None


def document(text: str | bytes) -> Any:
    """A JSON document. Raises FormatError."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"is not JSON: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"is not JSON: {error}") from None


def cells(line: str, delimiter: str = ",") -> list[str]:
    """A line of CSV, taken apart; empty where it cannot be."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
