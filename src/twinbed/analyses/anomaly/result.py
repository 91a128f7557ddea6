"""What ``anomaly`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.show.table import Row


@dataclass(frozen=True, slots=True)
class Anomalies:
    """Each row has the levels of the factors other than N."""

    faster: tuple[Row, ...]
    """Each N against N = 1."""
    counters: tuple[Row, ...]
    """Every other metric against the rate, where a pair among several is faster."""
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
