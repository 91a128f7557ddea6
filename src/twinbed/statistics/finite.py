"""The total over a finite population, from a simple random sample of it without replacement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Total:
    """An estimated total in the unit of the values, with a two-sided interval.

    No interval where one value was drawn of several, or where all that were drawn are equal: they say nothing of how far the
    others differ, and an interval without width would be surer than its data (no retransmission on eight links of eighty).
    """

    estimate: float
    low: float | None
    high: float | None


def total(values: Sequence[float], of: int, level: float = 0.95) -> Total:
    """The total over ``of`` units, of which the units with ``values`` were drawn, each set of so many equally likely.

    Horvitz and Thompson's estimator (1952), each value divided by the probability n/N that it was drawn: N times the mean.
    Its variance is N² (1 - n/N) s²/n, estimated without bias, and the interval Student's with n - 1 degrees of freedom
    (Cochran, Sampling Techniques, 3rd edition, 1977, sections 2.6 and 2.8).  Where all were drawn, the sum itself.  Values are
    not negative, so that the total is never below what was seen.  Raises ValueError where there are none, or more than ``of``.
    """
    n = len(values)
    if not 0 < n <= of:
        raise ValueError(f"{n} values were drawn of {of}")
    seen = math.fsum(values)
    if n == of:
        return Total(seen, seen, seen)
    mean = seen / n
    if min(values) == max(values):
        return Total(of * mean, None, None)
    from scipy.special import stdtrit

    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * of * math.sqrt((1 - n / of) * variance / n)
    return Total(of * mean, max(of * mean - half, seen), of * mean + half)
