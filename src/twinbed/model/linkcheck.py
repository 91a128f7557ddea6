"""The check of a cell's links: what was asked of them, what was measured, and whether they agree.

Figures are in base units: bit/s, bytes, seconds; a share for loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from twinbed.model.caution import Caution


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


@dataclass(frozen=True, slots=True)
class LinkCheck:
    """``settings`` are those that the check depends on, ``run`` the run in whose bed it was made, ``reason`` why it failed.

    ``measured_pairs`` of the cell's ``pairs`` were measured; the links of the others were read back only. None in files that
    were written before this field was: there only the first pair was measured.
    """

    cell: str
    run: str
    settings: Mapping[str, Any]
    figures: Sequence[Figure]
    cautions: Sequence[Caution] = ()
    reason: str | None = None
    measured_pairs: Sequence[str] | None = None
    pairs: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "cell": self.cell,
            "run": self.run,
            "settings": dict(self.settings),
            "figures": [asdict(figure) for figure in self.figures],
            "cautions": [caution.to_json() for caution in self.cautions],
            "reason": self.reason,
            "measured_pairs": None if self.measured_pairs is None else list(self.measured_pairs),
            "pairs": self.pairs,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LinkCheck:
        """Raises KeyError, TypeError or ValueError where ``data`` is none."""
        return cls(
            data["cell"],
            data["run"],
            data["settings"],
            tuple(Figure(**{**figure, "verdict": Verdict(figure["verdict"])}) for figure in data["figures"]),
            tuple(Caution.from_json(caution) for caution in data["cautions"]),
            data["reason"],
            None if (pairs := data.get("measured_pairs")) is None else tuple(pairs),
            data.get("pairs"),
        )
