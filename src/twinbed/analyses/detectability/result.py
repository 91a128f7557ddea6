"""The result of ``detectability``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.analyses.detectability.features import Remedy
from twinbed.model.caution import Cautioned
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
    """The accuracy of an observation of one length."""

    packets: int | None
    """Packets each way; None for everything that an observer has without counting packets."""
    seconds: float | None
    area: float
    accuracy: float
    """Balanced accuracy: the mean of both testbeds' shares of observations that are identified correctly."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Packets for the accuracy TARGET, by interpolation between the lengths tried; ends are None beyond the longest."""

    packets: float
    seconds: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well an observer distinguishes the testbeds by one set of features."""

    features: int
    area: float
    """The AUC at the longest observation."""
    interval: Interval
    p: float
    """After Holm's correction over all tests with the same set."""
    exact: bool
    lengths: tuple[Length, ...]
    needed: Needed | None
    """None if the accuracy is not reached, or no difference is shown."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One feature alone."""

    feature: str
    area: float
    p: float
    """Corrected for all of the observer's features."""
    remedy: Remedy | None
    applied: bool
    """True if both testbeds had the remedy already."""

    @property
    def removable(self) -> bool:
        return self.remedy is not None and not self.applied


@dataclass(frozen=True, slots=True)
class Detection:
    """One observer's comparison of two testbeds in one cell."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    observer: str
    runs: tuple[int, int]
    as_is: Accuracy
    residue: Accuracy | None
    """The accuracy without the features that a setting removes; None if no setting removes any."""
    ranked: tuple[Ranked, ...]
    """Features that differ between runs, the most revealing first."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A testbed's speed, and how well it is distinguished from the reference."""

    cell: Mapping[str, Level]
    testbed: str
    observer: str
    area: float
    interval: Interval
    ratio: float
    """The ratio of the headline to the reference's."""
    best: bool
    """True if no other testbed of the cell is both better hidden and as fast."""


@dataclass(frozen=True, slots=True)
class Detectability(Cautioned):
    reference: str
    alpha: float
    detections: tuple[Detection, ...]
    metric: str
    """The headline of ``costs``; empty without one."""
    costs: tuple[Cost, ...] = ()
