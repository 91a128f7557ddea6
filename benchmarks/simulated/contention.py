"""Planted contention: studies whose rate falls with N, and a machine whose metrics turn before it or with it.

The rate is planted to have lost 7.7 % at 14 pairs and 14.8 % at 16, so that 14 is the one tested number at which an alarm
comes in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from twinbed.statistics.contention import FALSE_ALARMS, Detection, Runs, detect

TESTED = (1, 2, 4, 8, 14, 16, 24, 32, 40)
IN_TIME, FALLEN = 14, 16
FALLS_AT = 12
"""Pairs from which on the rate falls."""
NOISE = (3.0, 2e3, 0.1, 1.0)
"""Standard deviations of idle time, interrupts, delay in run queues, and a metric that says nothing."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Planted:
    name: str
    turns_at: int
    """Pairs from which on idle time and interrupts turn."""
    spread: float = 0.02
    """Standard deviation of the logarithm of the rate."""
    logarithmic: bool = False
    """Whether the metrics are the exponentials of normal ones."""
    more: int = 0
    """Further metrics that say nothing."""

    def study(self, seed: int, replicates: int, *, contention: bool = True) -> Runs:
        chance = np.random.default_rng(seed)
        of_n, replicate, rate, machine = [], [], [], []
        for each in range(replicates):
            for n in TESTED:
                load = max(0, n - FALLS_AT) / 30 if contention else 0.0
                of_n.append(n)
                replicate.append(each)
                rate.append(1000 * math.exp(-1.2 * load + chance.normal(0, self.spread)))
                row = self.means(n if contention else 1) + chance.normal(0, NOISE)
                row = np.exp(row / NOISE / 5) if self.logarithmic else row
                machine.append(np.concatenate([row, chance.normal(size=self.more)]))
        return Runs(of_n, replicate, rate, np.array(machine))

    def means(self, n: int) -> Floats:
        load, early = max(0, n - FALLS_AT) / 30, max(0, n - self.turns_at) / 30
        return np.array([90 - 60 * early, 5e3 + 4e4 * early, 2 * load, 0.0])

    def best(self, false_alarms: float = FALSE_ALARMS) -> float:
        """The share of runs at IN_TIME that no detector can exceed: the likelihood ratio's (Neyman and Pearson), of normal
        metrics of one covariance, held against runs of the largest number free of contention, the most alike to them."""
        apart = np.linalg.norm((self.means(IN_TIME) - self.means(8)) / np.array(NOISE))
        return float(ndtr(apart - ndtri(1 - false_alarms)))


PLANTED = (
    Planted("the machine turns first", 6),
    Planted("first; logarithms are normal", 6, logarithmic=True),
    Planted("first; 60 more metrics that say nothing", 6, more=60),
    Planted("first; the rate varies by 5 %", 6, spread=0.05),
    Planted("the machine turns with the rate", 12),
    Planted("with it; logarithms are normal", 12, logarithmic=True),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of the studies that have a detector; shares are means over them."""

    without: float
    """Share of all studies that have none: too few runs of one kind."""
    area: float
    least_area: float
    false_alarms: float
    """Of the studies' own test runs free of contention."""
    quiet: float
    """Share of alarms in runs of other studies, without any contention."""
    in_time: float
    """Share of alarms in runs of other studies, at IN_TIME."""
    leads: float
    """Share of studies in which most runs alarm at a smaller N than the rate has fallen at."""


def outcome(of: Planted, replicates: int, studies: int) -> Outcome:
    found = [each for seed in range(studies) if (each := _detected(of.study(seed, replicates))) is not None]
    quiet = [of.study(100_000 + seed, replicates, contention=False) for seed in range(len(found))]
    again = [of.study(200_000 + seed, replicates) for seed in range(len(found))]
    return Outcome(
        1 - len(found) / studies,
        float(np.mean([each.area.value for each in found])),
        min(each.area.value for each in found),
        float(np.mean([each.false_alarms for each in found])),
        float(np.mean([each.detector.alarms(runs.machine).mean() for each, runs in zip(found, quiet, strict=True)])),
        float(np.mean([_at(each, runs, IN_TIME) for each, runs in zip(found, again, strict=True)])),
        leads(found) / len(found),
    )


def _detected(runs: Runs) -> Detection | None:
    try:
        return detect(runs)
    except ValueError:
        return None


def _at(found: Detection, runs: Runs, n: int) -> float:
    return float(found.detector.alarms(runs.machine)[np.asarray(runs.n) == n].mean())


def leads(found: Sequence[Detection]) -> int:
    pairs = [(each.lead.alarmed, each.lead.fallen) for each in found]
    return sum(alarmed is not None and fallen is not None and alarmed < fallen for alarmed, fallen in pairs)


REPLICATES = (4, 8, 16)
HEADS = (
    "planted",
    "replicates",
    "area, mean (least)",
    "false alarms",
    "alarms without contention",
    "detected in time",
    "best there can be",
    "studies that lead",
    "no detector",
)


def rows(studies: int) -> Iterator[list[str]]:
    """Yield the rows of the table in docs/coverage.md, shares in per cent."""
    for planted in PLANTED:
        for replicates in REPLICATES:
            of = outcome(planted, replicates, studies)
            shares = (of.false_alarms, of.quiet, of.in_time, planted.best(), of.leads, of.without)
            area = f"{of.area:.3f} ({of.least_area:.3f})"
            yield [planted.name, str(replicates), area, *(f"{100 * share:.1f}" for share in shares)]
