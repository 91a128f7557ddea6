"""How early a detector alarms: the share of runs that alarm at each N, together with the loss of their rate there.

Shares have Clopper and Pearson's intervals (Biometrika 26, 1934): runs of one N are of different replicates, and assumed to be
independent. Runs of several N together do not vary more than runs of one, so that their interval is not too narrow. The method
assumes that more contention never makes alarms rarer, so the N from which most runs alarm is taken from shares made monotone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import betaincinv

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.isotonic import isotonic

MOST = 0.5


@dataclass(frozen=True, slots=True)
class Share:
    count: int
    of: int
    """At least 1."""

    @property
    def value(self) -> float:
        return self.count / self.of

    def interval(self, level: float = 0.95) -> Bounds:
        tail, rest = (1 - level) / 2, self.of - self.count
        low = 0.0 if self.count == 0 else float(betaincinv(self.count, rest + 1, tail))
        high = 1.0 if rest == 0 else float(betaincinv(self.count + 1, rest, 1 - tail))
        return Bounds(low, high, level)


@dataclass(frozen=True, slots=True)
class AtN:
    """One tested N."""

    n: int
    lost: float
    """Share of the rate at the least N that the mean rate, made monotone over N, has lost."""
    alarms: Share | None
    """The share of test runs that alarm; None where there is no test run."""


@dataclass(frozen=True, slots=True)
class Lead:
    steps: tuple[AtN, ...]
    alarmed: int | None
    """The least N at which more than half of the test runs alarm, after shares are made monotone over N; None without one."""
    fallen: int | None
    """The least N at which the rate has fallen by what matters; None without one."""
    before: Share | None
    """The share of test runs that alarm at the N that are contended but have lost less than matters. None without such an N:
    nothing could then be detected in time."""


def lead(steps: Sequence[AtN], drop: float, fallen: float) -> Lead:
    """Return the lead over tested N, in their order."""
    tested = [(step.n, step.alarms) for step in steps if step.alarms is not None]
    monotone = isotonic([alarms.value for _, alarms in tested], [float(alarms.of) for _, alarms in tested])
    alarmed = next((n for (n, _), share in zip(tested, monotone, strict=True) if share > MOST), None)
    there = [step.alarms for step in steps if drop <= step.lost < fallen and step.alarms is not None]
    before = Share(sum(each.count for each in there), sum(each.of for each in there)) if there else None
    return Lead(tuple(steps), alarmed, next((step.n for step in steps if step.lost >= fallen), None), before)
