"""The total over a finite population, from a simple random sample of it without replacement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Total:
    """An estimated total in the unit of the values, with a two-sided interval.

    There is no interval if one value was drawn of several, or if all drawn values are equal or proportional to their work. They
    then say nothing of how far the others differ, and an interval without width would be surer than its data (no retransmission
    on eight links of eighty).
    """

    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """A quantity known of all units that goes along with the values: that of each unit drawn, above 0, and the sum over all."""

    drawn: Sequence[float]
    of_all: float


def total(values: Sequence[float], of: int, work: Work | None = None, level: float = 0.95) -> Total:
    """Estimate the total over ``of`` units, from units with ``values`` drawn at random, each set equally likely.

    Without ``work`` Horvitz and Thompson's estimator (1952), each value divided by the probability n/N that it was drawn: N
    times the mean.  Its variance is N² (1 - n/N) s²/n, estimated without bias, and the interval Student's with n - 1 degrees of
    freedom (Cochran, Sampling Techniques, 3rd edition, 1977, sections 2.6 and 2.8).  With ``work`` the ratio estimator: all
    work times R, what the units drawn have for a piece of theirs (section 6.3).  Then s² is of the values less R times their
    work. The variance is that of the total of undrawn units about R's prediction (Royall, Biometrika 57, 1970): u² s² n N/(N -
    n), with u their work over that of the drawn units.  With equal work both are the same. Where all were drawn, the sum
    itself.  Values are not negative, so that the total is never below what was seen. Raises ValueError where there are none, or
    more than ``of``.
    """
    n = len(values)
    if not 0 < n <= of:
        raise ValueError(f"{n} values were drawn of {of}")
    seen = math.fsum(values)
    if n == of:
        return Total(seen, seen, seen)
    if work is None:
        rest, expected = (of - n) / n, [seen / n] * n
    else:
        done = math.fsum(work.drawn)
        rest, expected = (work.of_all - done) / done, [seen / done * amount for amount in work.drawn]
    apart = [value - usual for value, usual in zip(values, expected, strict=True)]
    estimate = seen + rest * seen
    if max(map(abs, apart)) <= 1e-12 * seen:
        return Total(estimate, None, None)
    from scipy.special import stdtrit

    variance = math.fsum(residual**2 for residual in apart) / (n - 1)
    half = float(stdtrit(n - 1, (1 + level) / 2)) * rest * math.sqrt(n * of / (of - n) * variance)
    return Total(estimate, max(estimate - half, seen), estimate + half)
