"""The two bounds of an interval."""

from __future__ import annotations

from typing import NamedTuple


class Bounds(NamedTuple):
    """A two-sided interval [low, high] at a confidence level (0.95 is 95 %)."""

    low: float
    high: float
    level: float
