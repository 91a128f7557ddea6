"""The result of ``passport``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.observations.passports import Differences


@dataclass(frozen=True, slots=True)
class Passports:
    """The differences between each testbed and the reference, or between two results."""

    pairs: tuple[Differences, ...]
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
