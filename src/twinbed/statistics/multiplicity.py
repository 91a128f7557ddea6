"""Corrections of p-values for many tests at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload


@overload
def holm(p_values: Sequence[float]) -> list[float]: ...
@overload
def holm(p_values: Sequence[float | None]) -> list[float | None]: ...
def holm(p_values: Sequence[float | None]) -> Sequence[float | None]:
    """Return p-values with Holm's step-down adjustment (1979, Scand. J. Stat. 6:65). Rejecting a result of at most alpha keeps
    the chance of any false rejection in the family at alpha, whatever the dependence. None is no test, and stays None."""
    tested = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p_value, index) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * p_value))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values with Benjamini and Hochberg's step-up adjustment (1995, J. R. Stat. Soc. B 57:289). Rejecting a result of
    at most alpha keeps the expected share of false rejections at alpha, for independent or positively dependent tests."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index], reverse=True)
    adjusted = [1.0] * len(p_values)
    lowest = 1.0
    for before, index in enumerate(order):
        lowest = min(lowest, p_values[index] * len(p_values) / (len(p_values) - before))
        adjusted[index] = lowest
    return adjusted
