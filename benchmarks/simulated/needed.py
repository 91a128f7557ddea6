"""How often as many new replicates as ``replicates_needed`` names show equivalence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated.arrays import ratio_p_values
from twinbed.statistics.power import replicates_needed

MARGIN, ALPHA = 0.10, 0.05
RATIOS = (1.0, 1.03, 1.05, 1.07)
DEVIATIONS = (0.03, 0.05, 0.10)
AGAIN = 200
"""New studies after each pilot."""
MOST_TRIES = 50
"""Pilots for each that is asked for: of small spreads hardly any is inconclusive."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Chance:
    shown: float
    """The mean share of new studies that show it; nan where no pilot named a number."""
    named: int
    """How many pilots named one."""


def _drawn(noise: np.random.Generator, ratio: float, deviation: float, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    return np.exp(math.log(ratio) + noise.normal(0, deviation, shape)), np.exp(noise.normal(0, deviation, shape))


def chance(n: int, deviation: float, ratio: float, pilots: int, seed: int) -> Chance:
    """After ``pilots`` inconclusive studies of ``n`` replicates a testbed."""
    noise, shown, count = np.random.default_rng([seed, n, round(1000 * ratio), round(1000 * deviation)]), [], 0
    for _ in range(MOST_TRIES * pilots):
        one, two = _drawn(noise, ratio, deviation, (1, n))
        if count == pilots:
            break
        if ratio_p_values(one, two, MARGIN)[0][0] <= ALPHA:
            continue
        count += 1
        if needed := replicates_needed(one[0].tolist(), two[0].tolist(), MARGIN, ALPHA):
            inside, _ = ratio_p_values(*_drawn(noise, ratio, deviation, (AGAIN, needed)), MARGIN)
            shown.append(float((inside <= ALPHA).mean()))
    return Chance(float(np.mean(shown)) if shown else math.nan, len(shown))
