"""The result of ``anomaly``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.show.table import Row


@dataclass(frozen=True, slots=True)
class Anomalies:
    """Rows with the levels of the factors other than N."""

    faster: tuple[Row, ...]
    """Each N, compared with N = 1."""
    counters: tuple[Row, ...]
    """Every other metric and its correlation with the rate, if a pair among several is faster."""
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
