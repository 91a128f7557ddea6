"""One recomputed number, and its comparison with the printed one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from twinbed.published import rounding
from twinbed.published.printed import Cell
from twinbed.published.rounding import Range

Take = Callable[[Cell], Range]
"""The meaning of a cell: its number as printed, or all numbers that are printed like it."""


class Status(StrEnum):
    EQUAL = "equal"
    ROUNDING = "within rounding"
    DIFFERS = "differs"
    DERIVED = "derived"
    """No printed number to compare it with."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recomputed number. ``recomputed`` is of the printed digits; ``low`` and ``high`` hold the results of all inputs that
    round to them, None where the result is no number."""

    table: str
    cell: str
    quantity: str
    printed: str | None
    recomputed: str
    unit: str
    low: float | None
    high: float | None
    formula: str
    status: Status


@dataclass(frozen=True, slots=True)
class Worked:
    """A result of the printed digits, and of all numbers that round to them."""

    value: Fraction
    span: Range


def work(formula: Callable[[Take], Range]) -> Worked:
    """Compute a formula both ways."""
    return Worked(formula(lambda cell: Range.exactly(cell.number)).middle, formula(lambda cell: cell.range))


def held(cell: Cell, result: Worked, formula: str, quantity: str = "") -> Replayed:
    """Compare a printed cell with the result of others."""
    decimals = cell.decimals or 0
    return Replayed(
        table=cell.table,
        cell=cell.place,
        quantity=quantity or f"{cell.metric} {cell.kind}".replace("_", " "),
        printed=cell.printed,
        recomputed=rounding.shown(result.value, decimals + 1),
        unit="" if cell.unit == "1" else cell.unit,
        low=float(result.span.low),
        high=float(result.span.high),
        formula=formula,
        status=status(result, cell.number, decimals),
    )


def status(result: Worked, printed: Fraction, decimals: int) -> Status:
    if rounding.rounds_to(result.value, printed, decimals):
        return Status.EQUAL
    return Status.ROUNDING if result.span.overlaps(rounding.printed_range(printed, decimals)) else Status.DIFFERS


def derived(table: str, cell: str, quantity: str, result: Worked, unit: str, formula: str) -> Replayed:
    """Return a number that is printed nowhere."""
    value, span = rounding.significant(result.value, 4), result.span
    return Replayed(table, cell, quantity, None, value, unit, float(span.low), float(span.high), formula, Status.DERIVED)
