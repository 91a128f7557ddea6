"""The result of ``passport``."""

from __future__ import annotations

from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.observations.passports import Differences


@dataclass(frozen=True, slots=True)
class Passports(Cautioned):
    """The differences between each testbed and the reference, or between two results."""

    pairs: tuple[Differences, ...]
