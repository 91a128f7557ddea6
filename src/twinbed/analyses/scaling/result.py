"""The result of ``scaling``: statements about how many fit by the objectives of a report, and the measurements behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twinbed.model.caution import Cautioned
from twinbed.model.run import Level
from twinbed.observations.numbered import one_of

Levels = Mapping[str, Level]
"""The levels of the factors that vary, N itself left out."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One objective of one combination of levels."""

    objective: str
    """The objective in words: ``goodput per pair at least 90 % of that at 1 pair``."""
    text: str
    """The statement, or why there is none."""
    decided: bool
    """False if there is no statement."""
    keeps: int | None = None
    """The largest N shown to keep the objective."""
    fails: int | None = None
    """The least N shown to fail it."""
    of_one: bool = False
    """True if compared with the value at N = 1, which keeps it by definition."""


@dataclass(frozen=True, slots=True)
class AtN:
    """The complete runs of one combination at one N; one entry a run that has the value."""

    n: int
    rates: Sequence[float]
    """The mean rate of a pair in each run, in base units."""
    losses: Sequence[float] = ()
    """Shares of what was sent; empty if not measured."""
    fairness: Sequence[float] = ()
    skew_s: float | None = None
    """The largest time between the first and the last client's start; None for one client."""
    overlap: float | None = None
    """The least share of the clients' time in which all of them ran; None for one client, or if unknown."""
    packets: Mapping[str, float] | None = None
    """Stage of the loss ledger -> packets, summed over pairs, mean over runs; None without a ledger."""

    @property
    def runs(self) -> int:
        """Return the number of runs with a measurement."""
        return max(len(self.rates), len(self.losses), len(self.fairness))

    @property
    def lost(self) -> float:
        """Return the packets that the ledger saw sent and not received."""
        return (self.packets or {}).get("sent", 0.0) - (self.packets or {}).get("received", 0.0)


@dataclass(frozen=True, slots=True)
class LevelScaling:
    """One combination of levels."""

    levels: Levels
    statements: Sequence[Statement]
    points: Sequence[AtN]
    """The points in the order of N."""
    failed: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """N -> (failed runs, all runs), ordered by N, only where some failed."""
    unrated: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """N -> (complete runs without a rate of all pairs, such as after losing a client; all runs), only where there are some."""

    @property
    def single(self) -> float | None:
        """Return the mean rate at N = 1."""
        values = [point.rates for point in self.points if point.n == 1 and point.rates]
        return sum(values[0]) / len(values[0]) if values else None

    @property
    def keeps(self) -> int | None:
        """Return the largest N shown to keep every objective; None where there is none."""
        kept = [statement.keeps or 0 for statement in self.statements if statement.decided]
        return min(kept, default=0) or None

    @property
    def tested(self) -> int:
        """Return the largest N with a complete run."""
        return self.points[-1].n

    @property
    def rated(self) -> int:
        """Return the largest N with a rate."""
        return max(point.n for point in self.points if point.rates)


@dataclass(frozen=True, slots=True)
class Scaling(Cautioned):
    """The statements and measurements of all combinations of levels."""

    over: str
    """The factor that is N."""
    rate: str
    """The metric."""
    unit: str
    confidence: float
    groups: Sequence[LevelScaling]
    most_loss: float | None = None
    """The objective's share; None where no loss is measured."""

    @property
    def numbers(self) -> int:
        """Return the smallest number of N with a rate, over combinations of levels."""
        return min(sum(bool(point.rates) for point in group.points) for group in self.groups)

    @property
    def noun(self) -> str:
        """Return the noun that N counts: ``pair``."""
        return one_of(self.over)
