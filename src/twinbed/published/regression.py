"""A printed regression table: its marks of significance, and the meaning of its coefficients in per cent.

A coefficient d of a logarithmic response changes the response by e^d - 1; with an interaction g by a variable centred at 1, at
x of it, by e^(d + (x - 1) g) - 1 (LDRD 3.1.2).  Marks follow from |coefficient / standard error| by the normal distribution,
which t is with 80,267 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Iterator

from twinbed.published import rounding
from twinbed.published.printed import Cell, Table
from twinbed.published.replayed import Replayed, Status, Take, Worked, derived, work
from twinbed.published.rounding import HUNDRED, Range

MARKS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))
"""p below this -> mark, as the table's note says."""
INTERACTION = "Concurrent Pairs * "
SHOWN_AT = 40
"""Concurrent pairs of the text's example."""


def mark(t: float) -> str:
    """Return the mark of a t value.

    >>> [mark(t) for t in (3.0, 2.0, 1.7, 1.0)]
    ['***', '**', '*', '']
    """
    from scipy.special import ndtr

    p = 2 * float(ndtr(-abs(t)))
    return next((text for level, text in MARKS if p < level), "")


def significance(table: Table) -> Iterator[Replayed]:
    for cell in table.where(kind="significance"):
        coefficient = table.cell(kind="coefficient", **cell.labels)
        error = table.cell(kind="standard error", **cell.labels)
        t = abs(coefficient.range) / error.range
        value = float(abs(coefficient.number) / error.number)
        least, most = mark(float(t.low)), mark(float(t.high))
        equal = mark(value) == cell.printed
        possible = len(least) <= len(cell.printed) <= len(most)
        yield Replayed(
            table=table.id,
            cell=cell.place,
            quantity="significance",
            printed=cell.printed or "none",
            recomputed=mark(value) or "none",
            unit="",
            low=float(t.low),
            high=float(t.high),
            formula=f"|t| = |{coefficient.printed} / {error.printed}| = {value:.3g}",
            status=Status.EQUAL if equal else Status.ROUNDING if possible else Status.DIFFERS,
        )


def effects(table: Table) -> Iterator[Replayed]:
    """Yield the per cent by which each 0/1 variable changes the response, at 1 and at SHOWN_AT concurrent pairs."""
    for interaction in table.where(kind="coefficient"):
        term = interaction.labels["term"]
        if not term.startswith(INTERACTION):
            continue
        of = term.removeprefix(INTERACTION)
        main = next(cell for cell in table.where(kind="coefficient") if cell.labels["term"].removeprefix("Compute ") == of)
        for pairs in (1, SHOWN_AT):
            formula = f"e^({main.printed} + {pairs - 1} x {interaction.printed}) - 1"
            yield derived(table.id, main.place, f"effect at {pairs} pairs", effect(main, interaction, pairs), "%", formula)


def effect(main: Cell, interaction: Cell, pairs: int) -> Worked:
    """Return the effect in per cent."""

    def formula(take: Take) -> Range:
        exponent = take(main) + Range.exactly(pairs - 1) * take(interaction)
        return (rounding.exponential(exponent) - Range.exactly(1)) * HUNDRED

    return work(formula)
