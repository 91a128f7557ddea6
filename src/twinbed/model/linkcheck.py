"""The check of a cell's links: requested and measured values, and whether they agree.

Figures are in base units: bit/s, bytes, seconds; a share for loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypedDict, cast

from twinbed.model.caution import Caution
from twinbed.model.json import Document, Json, dataclass_of, document, optional, text, tuple_of


class Verdict(StrEnum):
    WITHIN = "within tolerance"
    OUT = "out of tolerance"
    INCONCLUSIVE = "cannot be told"
    """The measurement cannot decide: hosts could not fill the link, or their slowness looks like delay."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One quantity of one direction of a path. ``least`` and ``most`` bound the tolerance, None if that side is not checked;
    ``measured`` is None if nothing arrived."""

    path: str
    """``client to server``, or ``client and server`` for a round trip."""
    quantity: str
    """rate, burst, delay (of a round trip), jitter, loss."""
    unit: str
    asked: float
    measured: float | None
    least: float | None
    most: float | None
    verdict: Verdict
    note: str = ""
    """The basis of the figure, and what to do if it is out of tolerance."""

    @classmethod
    def from_json(cls, data: Document) -> Figure:
        return dataclass_of(cls, data, verdict=lambda value: Verdict(text(value)))


class Depends(TypedDict):
    """The settings of a run that a check of its links depends on."""

    testbed: Document
    topology: Document


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """The check of one cell's links.

    It depends on ``settings`` and was made in the testbed of ``run``; ``reason`` says why it failed. Only ``measured_pairs`` of
    the cell's ``pairs`` were measured; the links of the others were only read back. It is None in older files: there only the
    first pair was measured.
    """

    cell: str
    run: str
    settings: Depends
    figures: Sequence[Figure]
    cautions: Sequence[Caution] = ()
    reason: str | None = None
    measured_pairs: Sequence[str] | None = None
    pairs: int | None = None

    def to_json(self) -> Document:
        return {
            "cell": self.cell,
            "run": self.run,
            "settings": cast(Document, self.settings),
            "figures": [asdict(figure) for figure in self.figures],
            "cautions": [caution.to_json() for caution in self.cautions],
            "reason": self.reason,
            "measured_pairs": None if self.measured_pairs is None else list(self.measured_pairs),
            "pairs": self.pairs,
        }

    @classmethod
    def from_json(cls, data: Document) -> LinkCheck:
        """Read a link check. Raises ValueError for other data."""
        return dataclass_of(
            cls,
            data,
            settings=_depends,
            figures=tuple_of(lambda value: Figure.from_json(document(value))),
            cautions=tuple_of(lambda value: Caution.from_json(document(value))),
            measured_pairs=optional(tuple_of(text)),
        )


def _depends(value: Json) -> Depends:
    return cast(Depends, document(value))
