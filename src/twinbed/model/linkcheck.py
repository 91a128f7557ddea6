"""The check of a cell's links: what was asked of them, what was measured, and whether they agree.

Figures are in base units: bit/s, bytes, seconds; a share for loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TypedDict, cast

from twinbed.model.caution import Caution
from twinbed.model.json import Document, document, documents, integer, items, number, text


class Verdict(StrEnum):
    WITHIN = "within tolerance"
    OUT = "out of tolerance"
    INCONCLUSIVE = "cannot be told"
    """The measurement cannot decide: hosts could not fill the link, or their slowness looks like delay."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One quantity of one direction of a path. ``least`` and ``most`` bound what is within tolerance, None where that side is
    not held to; ``measured`` is None where nothing arrived to measure it by."""

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
    """What the figure rests on, and what to do where it is out of tolerance."""

    @classmethod
    def from_json(cls, data: Document) -> Figure:
        measured, least, most = (None if data[name] is None else number(data[name]) for name in ("measured", "least", "most"))
        return cls(
            path=text(data["path"]),
            quantity=text(data["quantity"]),
            unit=text(data["unit"]),
            asked=number(data["asked"]),
            measured=measured,
            least=least,
            most=most,
            verdict=Verdict(text(data["verdict"])),
            note=text(data.get("note", "")),
        )


class Depends(TypedDict):
    """The settings of a run that a check of its links depends on."""

    testbed: Document
    topology: Document


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """``settings`` are those that the check depends on, ``run`` the run in whose bed it was made, ``reason`` why it failed.

    ``measured_pairs`` of the cell's ``pairs`` were measured; the links of the others were read back only. None in files that
    were written before this field was: there only the first pair was measured.
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
        """Raises KeyError, TypeError or ValueError where ``data`` is none."""
        reason, measured, pairs = data["reason"], data.get("measured_pairs"), data.get("pairs")
        return cls(
            cell=text(data["cell"]),
            run=text(data["run"]),
            settings=cast(Depends, document(data["settings"])),
            figures=tuple(Figure.from_json(figure) for figure in documents(data["figures"])),
            cautions=tuple(Caution.from_json(caution) for caution in documents(data["cautions"])),
            reason=None if reason is None else text(reason),
            measured_pairs=None if measured is None else tuple(text(pair) for pair in items(measured)),
            pairs=None if pairs is None else integer(pairs),
        )
