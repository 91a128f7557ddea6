"""A sample whose variance, logarithms and sorted values are computed once.

A comparison of two samples asks for them dozens of times, which is most of its time for large samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Sample(tuple[float, ...]):
    """Values in their order. Properties need at least one value, if not stated otherwise."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Return values as a sample, unchanged if they are one."""
        return values if isinstance(values, cls) else cls(values)

    def __getstate__(self) -> None:
        """Return nothing in addition to the values: a copy computes the rest again when asked."""

    @cached_property
    def array(self) -> NDArray[np.float64]:
        import numpy as np

        array = np.array(self, dtype=np.float64)
        array.flags.writeable = False
        return array

    @cached_property
    def ordered(self) -> list[float]:
        return sorted(self)

    @cached_property
    def least(self) -> float:
        return min(self)

    @cached_property
    def most(self) -> float:
        return max(self)

    @property
    def median(self) -> float:
        half = len(self) // 2
        return self.ordered[half] if len(self) % 2 else (self.ordered[half - 1] + self.ordered[half]) / 2

    @cached_property
    def average(self) -> float:
        """Return the mean. numpy would take an attribute of that name for its own."""
        return fmean(self)

    @cached_property
    def variance(self) -> float:
        """Return the variance (ddof 1), in two passes, of at least two values."""
        mean = self.average
        return math.fsum([(value - mean) ** 2 for value in self]) / (len(self) - 1)

    @property
    def varies(self) -> bool:
        """Return whether values differ by more than the rounding of what they were computed from."""
        return self.most - self.least > 1e-12 * max(abs(self.least), abs(self.most))

    @cached_property
    def logarithms(self) -> Sample:
        """Return the logarithms of positive values."""
        return Sample(map(math.log, self))

    @cached_property
    def about_median(self) -> Sample:
        """Return distances from the median."""
        middle = self.median
        return Sample([abs(value - middle) for value in self])

    @cached_property
    def standardised_fourth(self) -> float:
        """Return the fourth moment of values that vary, scaled to a standard deviation of 1, so that no power overflows a
        float."""
        mean, deviation = self.average, math.sqrt(self.variance)
        return fourth_moment([(value - mean) / deviation for value in self.ordered])


def fourth_moment(values: Sequence[float]) -> float:
    """Return the sum of fourth powers around a trimmed mean, of at least 5 values, for Bonett's kurtosis. The mean is without
    the share 1/(2 sqrt(n - 4)) at each end (2006, Comput. Stat. Data Anal. 50:775)."""
    ordered, n = sorted(values), len(values)
    cut = min(int(n / (2 * math.sqrt(n - 4))), (n - 1) // 2)
    centre = fmean(ordered[cut : n - cut])
    return math.fsum([(value - centre) ** 4 for value in ordered])
