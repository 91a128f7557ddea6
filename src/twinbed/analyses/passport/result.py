"""What ``passport`` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.contracts.analysis import Row
from twinbed.model.caution import Caution


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not the same on both sides, with all its values on either."""

    kind: str
    place: str
    fact: str
    left: Sequence[str]
    right: Sequence[str]
    varies: bool
    """Whether it also varies within a side."""
    why: str


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs between two sides, most suspicious first."""

    left: str
    right: str
    differ: int
    unknown: int
    """Facts that only one side has recorded."""
    same: int
    differences: tuple[Difference, ...]

    @property
    def summary(self) -> Row:
        return {
            "left": self.left,
            "right": self.right,
            "differ": self.differ,
            "unknown": self.unknown,
            "same": self.same,
        }


@dataclass(frozen=True, slots=True)
class Passports:
    """The differences between each testbed and the reference."""

    pairs: tuple[Differences, ...]
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
