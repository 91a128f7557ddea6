"""Studies that go on until they are decided, simulated: wrong and right verdicts over all looks, and how far they go."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.simulated.arrays import ratio_p_values
from twinbed.design import interim_blocks
from twinbed.model.interim import UntilDecided
from twinbed.statistics.sequential import information, interim_levels

ALPHA, MARGIN = 0.05, 0.10


@dataclass(frozen=True)
class Ends:
    """Shares of studies of one comparison that end with each verdict, and the mean of the replicates they make."""

    equivalent: float
    different: float
    replicates: float


def ends(
    until: UntilDecided, ratio: float, spreads: tuple[float, float], studies: int, seed: int, correlation: float = 0.0
) -> Ends:
    """Log-normal values, whose logarithms correlate with the testbed's run before; a study ends with its first verdict."""
    noise = np.random.default_rng([seed, until.least, until.most])
    x = ratio * _values(noise, spreads[0], (studies, until.most), correlation)
    y = _values(noise, spreads[1], (studies, until.most), correlation)
    looks = interim_blocks(until)
    times = [information(blocks, until.most) for blocks in looks]
    going = np.ones(studies, bool)
    equivalent, different, made = 0, 0, 0
    for blocks, level, half in zip(looks, interim_levels(ALPHA, times), interim_levels(ALPHA / 2, times), strict=True):
        inside, outside = ratio_p_values(x[:, :blocks], y[:, :blocks], MARGIN)
        ended_inside, ended_outside = going & (inside <= level), going & (outside <= 2 * half)
        ended = ended_inside | ended_outside | (going & (blocks == until.most))
        equivalent += int(ended_inside.sum())
        different += int(ended_outside.sum())
        made += blocks * int(ended.sum())
        going &= ~ended
    return Ends(equivalent / studies, different / studies, made / studies)


def _values(noise: np.random.Generator, spread: float, shape: tuple[int, int], correlation: float) -> np.ndarray:
    logarithms = noise.normal(0, spread, shape)
    for run in range(1, shape[1] if correlation else 0):
        logarithms[:, run] = correlation * logarithms[:, run - 1] + math.sqrt(1 - correlation**2) * logarithms[:, run]
    return np.exp(logarithms)


def error(share: float, of: int) -> float:
    """Monte Carlo standard error of a share."""
    return math.sqrt(share * (1 - share) / of)
