"""The result of ``anomaly``."""

from __future__ import annotations

from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.show.table import Row


@dataclass(frozen=True, slots=True)
class Anomalies(Cautioned):
    """Rows with the levels of the factors other than N."""

    faster: tuple[Row, ...]
    """Each N, compared with N = 1."""
    counters: tuple[Row, ...]
    """Every other metric and its correlation with the rate, if a pair among several is faster."""
