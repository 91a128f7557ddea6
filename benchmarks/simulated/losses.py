"""How many fit, by losses: how often an N is named that does not keep the objective.

Loss in per cent of a run at one N, objective at most 1 %.  Each world says whether its mean keeps that, and most of its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twinbed.statistics.capacity import Objective, capacity

BOUND = 1.0
SIZES = (2, 3, 5, 10)
DATAGRAMS = 10_000


@dataclass(frozen=True)
class World:
    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    mean: bool
    """Whether the mean of all runs is at most the bound."""
    most: bool
    """Whether more than half of all runs are."""


@dataclass(frozen=True)
class Named:
    keeps: float
    """The share of studies that name it as keeping the objective."""
    fails: float


def named(world: World, n: int, studies: int, seed: int) -> Named:
    noise = np.random.default_rng([seed, n, sum(world.name.encode())])
    found = [capacity({1: world.draw(noise, n).tolist()}, Objective(BOUND, at_most=True)) for _ in range(studies)]
    return Named(sum(each.keeps == 1 for each in found) / studies, sum(each.fails == 1 for each in found) / studies)


def _binomial(share: float, between: float = 0.0) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Datagrams lost in runs whose own shares are of a beta distribution with the standard deviation ``between``."""

    def draw(noise: np.random.Generator, n: int) -> np.ndarray:
        own = np.full(n, share)
        if between:
            size = share * (1 - share) / between**2 - 1
            own = noise.beta(share * size, (1 - share) * size, n)
        return 100 * noise.binomial(DATAGRAMS, own) / DATAGRAMS

    return draw


def _rare(share: float, loss: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Runs of which a share loses much, and the others nothing."""
    return lambda noise, n: np.where(noise.random(n) < share, loss, 0.0)


def _median(at: float, spread: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda noise, n: at * noise.lognormal(0, spread, n)


WORLDS = (
    World("datagrams lost singly, 1 % in the mean", _binomial(0.01), mean=True, most=False),
    World("bursts: runs differ as much as their mean, 1.2 %", _binomial(0.012, 0.012), mean=False, most=True),
    World("log-normal, median at the bound, runs apart by 3 times", _median(1.0, 1.1), mean=False, most=False),
    World("half of the runs lose 15 %", _rare(0.5, 15.0), mean=False, most=False),
    World("60 % of the runs lose 15 %", _rare(0.6, 15.0), mean=False, most=False),
    World("10 % of the runs lose 15 %", _rare(0.1, 15.0), mean=False, most=True),
    World("10 % of the runs lose 5 %", _rare(0.1, 5.0), mean=True, most=True),
    World("no run loses anything", _rare(0.0, 0.0), mean=True, most=True),
)
