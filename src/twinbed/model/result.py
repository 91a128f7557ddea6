"""Parts of analyses' results: verdicts, intervals, pairing.  Plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval [low, high] at the stated confidence level (0.95 is 95 %)."""

    low: float
    high: float
    level: float


class Pairing(StrEnum):
    """How a study compares the means of two testbeds."""

    PAIRED = "paired"
    """By the differences within blocks: a shift of a whole block cancels."""
    INDEPENDENT = "independent"
    """As two samples of independent runs."""
