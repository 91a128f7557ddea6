"""Planted anomalies: studies in which a pair is faster among several than alone, and one of 188 metrics moves with its rate.

The other 187 are what hosts count whatever the reason: counts that go with the work, with the time, with the time of each pair,
with two or all of these; rare ones; the response under other names; and levels that say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.anomaly import Given, Measure, Runs, moving

METRICS = 188
"""As the LDRD report's Table 3.2."""
SHARES = {1: 1.0, 2: 1.08, 4: 1.05}
"""The rate of a pair by N, of its rate alone, as Figure 3.1 (right) has it: two or four pairs are faster than one."""
SPREAD = 0.02
"""Standard deviation of the logarithm of the rate at equal N."""
SECONDS, ALONE = 90.0, 2000.0
NAME = "planted"
KINDS = ("work", "time", "pairs", "work and time", "all three", "rare", "response", "level")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A study with ``replicates`` runs at each N."""

    name: str
    replicates: int
    correlation: float | None
    """Of the planted metric's logarithm and the rate's, beyond work and time; None: nothing is planted."""
    direction: int = 1
    """1: more of it for each unit of work where the rate is higher."""
    of_n: int = 0
    """So many metrics change with N for a reason of their own."""
    common: float = 0.0
    """The share of the other metrics' variance that all have in common."""
    tested: tuple[int, ...] = field(default=tuple(SHARES))

    def study(self, seed: int) -> tuple[Runs, dict[str, Given]]:
        chance = np.random.default_rng(seed)
        n = np.repeat(np.array(self.tested), self.replicates)
        rate = ALONE * np.array([SHARES[each] for each in n]) * np.exp(chance.normal(0, SPREAD, len(n)))
        work = rate * n * SECONDS
        shared = chance.normal(size=len(n))
        metrics: dict[str, Given] = {}
        if self.correlation is not None:
            metrics[NAME] = Given(Measure.PER_WORK, self._planted(chance, rate).tolist())
        for at in range(self.of_n):
            y = np.log(n) * chance.uniform(0.05, 0.5) * chance.choice((-1, 1)) + chance.normal(0, 0.05, len(n))
            metrics[f"of N {at}"] = Given(Measure.PER_WORK, np.exp(y).tolist())
        for at in range(METRICS - len(metrics)):
            kind = KINDS[at % len(KINDS)]
            noise = math.sqrt(self.common) * shared + math.sqrt(1 - self.common) * chance.normal(size=len(n))
            metrics[f"{kind} {at}"] = _null(kind, chance, noise, n, rate, work)
        return Runs(rate.tolist(), n.tolist(), (work / SECONDS).tolist()), metrics

    def _planted(self, chance: np.random.Generator, rate: Floats) -> Floats:
        """A count by work whose logarithm has that correlation with the rate's and a standard deviation of 0.3: what such a
        study's rate does not follow beyond a few per cent, its cause may by tens."""
        assert self.correlation is not None
        x = np.log(rate)
        of_rate = (x - x.mean()) / x.std()
        apart = chance.normal(size=len(x))
        y = self.direction * self.correlation * of_rate + math.sqrt(1 - self.correlation**2) * apart
        return np.exp(0.3 * y)


def _null(kind: str, chance: np.random.Generator, noise: Floats, n: Floats, rate: Floats, work: Floats) -> Given:
    spread = math.exp(chance.uniform(math.log(0.002), math.log(0.3)))
    parts = {"work": work, "time": np.full(len(n), ALONE * SECONDS), "pairs": ALONE * SECONDS * n}
    of = {"work and time": ("work", "time"), "all three": ("work", "time", "pairs")}.get(kind, (kind,))
    if kind == "level":
        return Given(Measure.LEVEL, (5 + noise).tolist())
    if kind == "response":
        form = chance.choice((-1, 1)) * np.log(rate if chance.random() < 0.5 else work)
        return Given(Measure.LEVEL, np.exp(form + chance.normal(0, 0.03 * SPREAD, len(n))).tolist())
    if kind == "rare":
        mean = math.exp(chance.uniform(math.log(0.5), math.log(50)))
        counts = chance.poisson(mean * work / work.mean())
        return Given(Measure.PER_WORK, (counts / work).tolist())
    shares = chance.dirichlet(np.ones(len(of)))
    counts = sum(share * parts[part] for share, part in zip(shares, of, strict=True)) * np.exp(spread * noise)
    return Given(Measure.PER_WORK, (counts / work).tolist())


@dataclass(frozen=True, slots=True)
class Outcome:
    """Shares, means over the studies."""

    found: float
    """Of studies that name the planted metric; nan where there is none."""
    first: float
    """Of studies that name it before all others; nan where there is none."""
    false: float
    """Of false ones among those named, 0 where none is: the false discovery rate."""
    any_false: float
    """Of studies that name any other than the planted one."""
    of_n: float
    """Of the metrics that change with N for a reason of their own, those named; nan where there are none."""


def outcome(of: Anomaly, studies: int, first: int = 0) -> Outcome:
    """Count what is named in studies of one seed after another, from ``first`` on."""
    found, before_all, false, of_n = [], [], [], []
    for seed in range(first, first + studies):
        named = [row.metric for row in moving(*of.study(seed)) if row.moves]
        wrong = [name for name in named if name != NAME and not name.startswith("of N")]
        found.append(NAME in named)
        before_all.append(named[:1] == [NAME])
        false.append(len(wrong) / max(1, len(named)))
        of_n.append(sum(name.startswith("of N") for name in named) / of.of_n if of.of_n else math.nan)
    planted = of.correlation is not None
    return Outcome(
        float(np.mean(found)) if planted else math.nan,
        float(np.mean(before_all)) if planted else math.nan,
        float(np.mean(false)),
        float(np.mean([share > 0 for share in false])),
        float(np.mean(of_n)),
    )


PLANTED = (
    *(Anomaly("more a request where faster", 10, correlation) for correlation in (0.6, 0.7, 0.8, 0.9)),
    Anomaly("the same, 5 replicates", 5, 0.9),
    Anomaly("the same, 20 replicates", 20, 0.6),
    Anomaly("the same, others have half their variance in common", 10, 0.8, common=0.5),
    Anomaly("fewer a request where faster", 10, 0.8, -1),
    Anomaly("the same, 20 replicates", 20, 0.8, -1),
    Anomaly("the same, 40 replicates", 40, 0.8, -1),
    Anomaly("none", 10, None),
    Anomaly("none, half the variance in common", 10, None, common=0.5),
    Anomaly("more a request where faster; 20 others change with N", 10, 0.8, of_n=20),
)
HEADS = ("planted", "correlation", "replicates", "found", "first of all", "false discoveries", "any false", "of N")


def rows(studies: int) -> Iterator[list[str]]:
    """Yield the rows of the table in docs/coverage.md, shares in per cent."""
    for planted in PLANTED:
        of = outcome(planted, studies)
        correlation = "" if planted.correlation is None else f"{planted.correlation * planted.direction:g}"
        shares = (of.found, of.first, of.false, of.any_false, of.of_n)
        shown = ("" if math.isnan(share) else f"{100 * share:.1f}" for share in shares)
        yield [planted.name, correlation, str(planted.replicates), *shown]
