"""Ratio of two rates of rare events, such as failed requests a run: exact.

If events come singly and at a constant rate a run or a request, the total is Poisson's. Given the total of both testbeds, the
total of the first is binomial: Przyborowski and Wilenski (1940, Biometrika 31:313); the interval is Clopper and Pearson's
(1934, Biometrika 26:404).  Events that come in bursts vary more, so this is the least uncertainty that counts have.

A sample without any event bounds its rate only from above: 0 of n runs is at most -ln(alpha)/n a run (Hanley and Lippman-Hand
1983, JAMA 249:1743, the rule of three).

The rate of events that come singly and at a constant rate, from their number: the exact interval of Garwood (1936, Biometrika
28:437), by quantiles of the gamma distribution.  Events that come in bursts vary more than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import bdtr, bdtrc, betaincinv, gammaincinv, gammaln

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.sample import Sample

RARE = 20.0
"""From so many counts a run, the spread of runs says more than Poisson's law does."""
TOO_EVEN = 0.05
"""Counts that are the same in every run are not taken as Poisson's where that would be no likelier than this."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Events of each run, and how much there was in which they could happen: runs, or requests of all runs."""

    events: Sequence[float]
    exposure: float

    @property
    def total(self) -> int:
        return round(math.fsum(self.events))


@dataclass(frozen=True, slots=True)
class CountTest:
    """The ratio of two rates of events. The upper bounds of intervals are infinite where the reference has no event."""

    interval: Bounds
    """At 1 - 2 alpha."""
    wide: Bounds
    """At 1 - alpha."""
    p_equivalent: float
    p_different: float


def are_rare(values: Sequence[float], reference: Sequence[float]) -> bool:
    """Return whether samples are counts of few events a run: whole numbers, below RARE on one side, and no more even than
    chance. A number that the set-up fixes, such as one connection a client, is no rare event."""
    if min(Sample.of(sample).average for sample in (values, reference)) >= RARE:
        return False
    if any(value < 0 or value != int(value) for sample in (values, reference) for value in sample):
        return False
    return _like_chance(values) and _like_chance(reference)


def _like_chance(values: Sequence[float]) -> bool:
    """Return whether chance makes counts this even: k in each of n runs, given their total, has probability (nk)! / (k!^n
    n^(nk))."""
    n, k = len(values), values[0]
    if any(value != k for value in values):
        return True
    return float(gammaln(n * k + 1) - n * gammaln(k + 1)) - n * k * math.log(n) > math.log(TOO_EVEN)


def count_test(tally: Tally, reference: Tally, margin: float, alpha: float) -> CountTest:
    """Test two tallies that have at least one event between them, and exposure on both sides."""
    x, y, n, m = tally.total, reference.total, tally.exposure, reference.exposure
    total = x + y

    def share(ratio: float) -> float:
        """Return the first sample's share of all events for this ratio of rates."""
        return ratio * n / (ratio * n + m)

    def at_least(ratio: float) -> float:
        return float(bdtrc(x - 1, total, share(ratio))) if x else 1.0

    def at_most(ratio: float) -> float:
        return float(bdtr(x, total, share(ratio)))

    def interval(tail: float) -> Bounds:
        low = float(betaincinv(x, y + 1, tail)) if x else 0.0
        high = float(betaincinv(x + 1, y, 1 - tail)) if y else 1.0
        return Bounds(low / (1 - low) * m / n, high / (1 - high) * m / n if high < 1 else math.inf, 1 - 2 * tail)

    inner, outer = 1 / (1 + margin), 1 + margin
    return CountTest(
        interval(alpha),
        interval(alpha / 2),
        max(at_least(inner), at_most(outer)),
        min(1.0, 2 * min(at_least(outer), at_most(inner))),
    )


def most_unseen(runs: int, level: float = 0.95) -> float:
    """Return the largest rate a run that ``runs`` runs without an event leave possible.

    >>> round(most_unseen(3), 3)
    0.999
    """
    return -math.log(1 - level) / runs


def unseen_share(runs: int, level: float = 0.95) -> float:
    """Return the largest share of runs that may be of a kind that none of these runs was of.

    >>> round(unseen_share(59), 3)
    0.05
    """
    return float(1 - (1 - level) ** (1 / runs))


def rate_bounds(events: int, exposure: float, level: float = 0.95) -> Bounds:
    """Return the interval of a rate per unit of exposure. Without an event the lower bound is 0, and the upper one two-sided
    still.

    >>> rate_bounds(10, 1.0)
    Bounds(low=4.795388696132, high=18.39035585607, level=0.95)
    """
    if events < 0 or exposure <= 0:
        raise ValueError(f"{events} events in {exposure:g}: events must be 0 or more, the exposure above 0")
    tail = (1 - level) / 2
    low = float(gammaincinv(events, tail)) / exposure if events else 0.0
    return Bounds(low, float(gammaincinv(events + 1, 1 - tail)) / exposure, level)
