"""How a ratio of geometric means changes: the ratio of two such ratios, of four independent samples of positive values.

With r = log(mean one / mean other) under one circumstance and s the same under another, the change s - r has Welch's t with
Satterthwaite's degrees of freedom (1946, Biometrics Bull. 2:110) of the four means. Effects on both sides of a ratio cancel.
The share of the difference that is gone, 1 - s/r, has Fieller's interval.  Units: natural logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.sample import Sample

Pair = tuple[Sequence[float], Sequence[float]]
"""Positive values, at least two of each side."""


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The logarithm of a ratio of geometric means, or a difference of such."""

    value: float
    parts: tuple[tuple[float, int], ...]
    """Each mean's squared standard error and number of values."""

    @classmethod
    def of(cls, pair: Pair) -> LogRatio:
        own, reference = (Sample.of(values).logarithms for values in pair)
        return cls(
            own.average - reference.average, tuple((sample.variance / len(sample), len(sample)) for sample in (own, reference))
        )

    def less(self, other: LogRatio) -> LogRatio:
        """Return the difference to another of independent values."""
        return LogRatio(self.value - other.value, (*self.parts, *other.parts))

    @property
    def error(self) -> float:
        return math.sqrt(sum(part for part, _ in self.parts))

    @property
    def df(self) -> float:
        total = sum(part for part, _ in self.parts)
        return total**2 / sum(part**2 / (count - 1) for part, count in self.parts) if total else math.inf

    def interval(self, level: float) -> Bounds:
        """Return the interval of the ratio itself."""
        half = float(stdtrit(self.df, (1 + level) / 2)) * self.error if self.error else 0.0
        return Bounds(math.exp(self.value - half), math.exp(self.value + half), level)

    @property
    def p_zero(self) -> float:
        """Return the two-sided p-value of the ratio being 1."""
        return min(1.0, 2 * self._above(abs(self.value)))

    def p_equivalent(self, margin: float) -> float:
        """Return the larger p-value of the two one-sided tests that the ratio lies in 1/(1 + margin) to 1 + margin."""
        return self._above(math.log1p(margin) - abs(self.value))

    def p_different(self, margin: float) -> float:
        """Return the p-value of the test that the ratio lies outside."""
        return min(1.0, 2 * self._above(abs(self.value) - math.log1p(margin)))

    def _above(self, room: float) -> float:
        if not self.error:
            return 0.0 if room > 0 else 1.0
        return float(stdtr(self.df, -room / self.error))
