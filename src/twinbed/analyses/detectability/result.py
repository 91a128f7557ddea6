"""What ``detectability`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.analyses.detectability.features import Remedy
from twinbed.model.caution import Caution
from twinbed.model.result import Interval
from twinbed.model.run import Level

TARGET = 0.95
"""The balanced accuracy that ``Needed`` counts packets for."""
WHO = {"passive": "A remote observer", "active": "An active remote observer", "host": "An observer on the host"}


def area_text(area: float) -> str:
    """Return ``0.99``; 1 only where it is."""
    return f"{area:.2f}" if area in (0, 1) else f"{min(max(area, 0.01), 0.99):.2f}"


@dataclass(frozen=True, slots=True)
class Length:
    """What an observation of so many packets tells."""

    packets: int | None
    """Each way; None is all that an observer has that counts no packets."""
    seconds: float | None
    area: float
    accuracy: float
    """Balanced: the mean of both testbeds' shares of observations that are told right."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Packets for the accuracy TARGET, by interpolation between the lengths tried; ends are None beyond the longest."""

    packets: float
    seconds: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Told:
    """How well an observer tells the testbeds by one set of features."""

    features: int
    area: float
    """At the longest observation."""
    interval: Interval
    p: float
    """After Holm's correction over everything that was tried with the same set."""
    exact: bool
    lengths: tuple[Length, ...]
    needed: Needed | None
    """None where the accuracy is not reached, or nothing was told."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One feature alone."""

    feature: str
    area: float
    p: float
    """Corrected for all of the observer's features."""
    remedy: Remedy | None
    applied: bool
    """Whether both testbeds had the remedy already."""

    @property
    def removable(self) -> bool:
        return self.remedy is not None and not self.applied


@dataclass(frozen=True, slots=True)
class Detection:
    """One observer, who has a run of either testbed of one cell."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    observer: str
    runs: tuple[int, int]
    as_is: Told
    residue: Told | None
    """Without the features that a setting removes; None where no setting removes any."""
    ranked: tuple[Ranked, ...]
    """Those that differ between runs, the most telling first."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a testbed costs in speed, against how well it is told from the reference."""

    cell: Mapping[str, Level]
    testbed: str
    observer: str
    area: float
    interval: Interval
    ratio: float
    """Of the headline to the reference's."""
    best: bool
    """Whether no other testbed of the cell is both harder to tell and as fast."""


@dataclass(frozen=True, slots=True)
class Detectability:
    reference: str
    alpha: float
    detections: tuple[Detection, ...]
    metric: str
    """The headline of ``costs``; empty where there is none."""
    costs: tuple[Cost, ...] = ()
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs, or of comparisons, that are not in it."""
