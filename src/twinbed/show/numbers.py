"""Numbers of statistical tables as texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from twinbed.show.quantities import NONE

DIGITS = 6


def figure(value: float | None, digits: int = DIGITS) -> str | None:
    """Return a number to so many digits; None is missing."""
    if value is None:
        return None
    if value and not 1e-4 <= abs(value) < 10.0**digits:
        return f"{value:.{digits - 2}g}"
    return f"{value:.{digits}g}"


def fixed(value: float | None, digits: int = DIGITS) -> str | None:
    """Return a number to exactly so many digits, zeros at its end too: ``64049.0``."""
    if value is None or value == 0 or not 1e-4 <= abs(value) < 10.0**digits:
        return figure(value, digits)
    return f"{value:#.{digits}g}".removesuffix(".")


def bounds(low: float | None, high: float | None) -> str:
    """``[1.23, 4.56]``, to the digits that the width can bear."""
    if low is None or high is None:
        return NONE
    width = high - low
    largest = max(abs(low), abs(high))
    if width <= 0 or not 1e-4 <= largest < 1e6:
        return f"[{low:.4g}, {high:.4g}]"
    decimals = max(0, min(9, 2 - math.floor(math.log10(width))))
    return f"[{low:.{decimals}f}, {high:.{decimals}f}]"


def probability(value: float | None) -> str | None:
    """``0.0123``, ``<0.0001``."""
    if value is None:
        return None
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


def percent(value: float | None) -> str | None:
    """Return a share as ``12.34 %``, ``<0.01 %``."""
    if value is None:
        return None
    return "<0.01 %" if 0 < value < 5e-5 else f"{round(value * 100, 2) + 0.0:.2f} %"


def joined(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
