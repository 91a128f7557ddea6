"""Runs that share something, simulated: blocks of the design, and sessions of which nothing is known before.

Logarithms are normal with a standard deviation of SPREAD in all; of their variance the share ``correlation`` is that of the
block or the session.  Both testbeds share their blocks, and each has sessions of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.simulated.arrays import paired_p_values, ratio_p_values

MARGIN, ALPHA = 0.10, 0.05
SPREAD = 0.075


@dataclass(frozen=True)
class Rates:
    """Shares of studies of one comparison that are called equivalent and different."""

    equivalent: float
    different: float


def _shared(noise: np.random.Generator, correlation: float, shape: tuple[int, ...], repeats: int) -> np.ndarray:
    return np.repeat(noise.normal(0, SPREAD * math.sqrt(correlation), shape), repeats, axis=1)


def _rates(inside: np.ndarray, outside: np.ndarray) -> Rates:
    return Rates(float((inside <= ALPHA).mean()), float((outside <= ALPHA).mean()))


def blocks(correlation: float, n: int, ratio: float, studies: int, seed: int, *, paired: bool) -> Rates:
    """Studies of ``n`` complete blocks."""
    noise = np.random.default_rng([seed, n, int(100 * correlation)])
    common, own = _shared(noise, correlation, (studies, n), 1), SPREAD * math.sqrt(1 - correlation)
    x, y = (np.exp(common + noise.normal(0, own, (studies, n))) for _ in range(2))
    return _rates(*(paired_p_values if paired else ratio_p_values)(ratio * x, y, MARGIN))


def sessions(correlation: float, count: int, runs: int, ratio: float, studies: int, seed: int, *, known: bool) -> Rates:
    """Studies in which each testbed has ``count`` sessions of its own, of ``runs`` runs each. ``known``: their means are
    compared."""
    noise = np.random.default_rng([seed, count, runs, int(100 * correlation)])
    own = SPREAD * math.sqrt(1 - correlation)
    x, y = (
        _shared(noise, correlation, (studies, count), runs) + noise.normal(0, own, (studies, count * runs)) for _ in range(2)
    )
    if known:
        x, y = (each.reshape(studies, count, runs).mean(2) for each in (x, y))
    return _rates(*ratio_p_values(ratio * np.exp(x), np.exp(y), MARGIN))
