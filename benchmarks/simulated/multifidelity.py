"""Estimates that mix few draws of an expensive model with many of cheap ones: their intervals' coverage, and their bias.

Each study draws values of models with a common part; the truth is 0 for means.  Everything goes through the program's own
functions.  ``usual`` is the textbook's interval with a correlation that is estimated from the same pairs, 1.96 s sqrt(...).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from twinbed.statistics.multifidelity.decision import decide
from twinbed.statistics.multifidelity.estimate import mixed, plain, shared
from twinbed.statistics.multifidelity.quantities import Quantity, quantile, share_below, variance

LEVEL = 0.95
NAMES = ("expensive", "cheap", "cheaper")
Values = np.ndarray
Standard = Callable[[np.random.Generator, tuple[int, int]], Values]


def normal(noise: np.random.Generator, shape: tuple[int, int]) -> Values:
    return noise.standard_normal(shape)


def exponential(noise: np.random.Generator, shape: tuple[int, int]) -> Values:
    return noise.exponential(size=shape) - 1


@dataclass(frozen=True)
class World:
    """``groups`` are the models that run the same draws, with how many draws for each one of the expensive model's."""

    about: str
    groups: Sequence[tuple[tuple[int, ...], float]]
    rho: float
    """Of any two models."""
    standard: Standard = normal
    least: int = 5
    """Draws of the expensive model from which it is simulated."""

    def draw(self, noise: np.random.Generator, n: int) -> Values:
        models = 1 + max(model for group, _ in self.groups for model in group)
        blocks = []
        for group, ratio in self.groups:
            draws = round(ratio * n)
            z = self.standard(noise, (draws, models + 1))
            block = math.sqrt(self.rho) * z[:, [0]] + math.sqrt(1 - self.rho) * z[:, 1:]
            block[:, [model for model in range(models) if model not in group]] = np.nan
            blocks.append(block)
        return np.vstack(blocks)


PAIRS = (((0, 1), 1), ((1,), 9))
WORLDS = (
    World("one cheap testbed, rho 0.95", PAIRS, 0.95),
    World("one cheap testbed, rho 0.8", PAIRS, 0.8),
    World("one cheap testbed, rho 0.5", PAIRS, 0.5),
    World("one cheap testbed, rho 0.95, exponential values", PAIRS, 0.95, exponential),
    World("two, nested (MFMC), rho 0.9", (((0, 1, 2), 1), ((1, 2), 4), ((2,), 15)), 0.9, least=10),
    World("two, draws of their own (ACV-IS), rho 0.9", (((0, 1, 2), 1), ((1,), 4), ((2,), 15)), 0.9, least=10),
    World("two, one through the other (MLBLUE), rho 0.9", (((0, 1), 1), ((1, 2), 4), ((2,), 15)), 0.9, least=10),
    World("two, each with half the draws (MLBLUE), rho 0.9", (((0, 1), 0.5), ((0, 2), 0.5), ((1, 2), 4)), 0.9, least=20),
)
CURVES: Mapping[str, tuple[Callable[[Values], Values], Callable[[Values], Values], float]] = {
    "a line": (lambda z: z, lambda z: 2 * z, 0.0),
    "the expensive testbed saturates": (
        lambda z: np.minimum(z, 0.3),
        lambda z: z,
        float(0.3 * stats.norm.sf(0.3) - stats.norm.pdf(0.3)),
    ),
    "the expensive one's square": (lambda z: z + z**2 / 2, lambda z: z, 0.5),
    "the cheap one's exponential": (lambda z: z, np.exp, 0.0),
    "rates that a line limits": (lambda z: 1 / (1 + np.exp(z)), lambda z: np.exp(-z), 0.5),
}
"""Answers of the expensive and the cheap testbed to a standard normal input, and the mean of the expensive one's."""


@dataclass(frozen=True)
class Curved:
    coverage: float
    """With the decision."""
    alone: float
    """The interval from the expensive testbed's draws alone."""
    mixed: float
    """Share of studies in which the cheap testbed is mixed in."""


def curved(name: str, n: int, studies: int, seed: int) -> Curved:
    """``n`` draws of the expensive testbed of ten times as many, with noise of 0.1 on each."""
    expensive, cheap, truth = CURVES[name]
    noise = np.random.default_rng([seed, n, [*CURVES].index(name)])
    held, alone, mixes = [], [], []
    for _ in range(studies):
        z = noise.standard_normal(10 * n)
        values = np.column_stack([expensive(z), cheap(z)]) + 0.1 * noise.standard_normal((10 * n, 2))
        values[n:, 0] = np.nan
        made = decide(values, LEVEL, NAMES)
        held.append(abs(made.estimate.value - truth) <= made.estimate.half_width)
        alone.append(abs(made.plain.value - truth) <= made.plain.half_width)
        mixes.append(bool(made.estimate.models))
    return Curved(float(np.mean(held)), float(np.mean(alone)), float(np.mean(mixes)))


SIZES = (5, 10, 20)


@dataclass(frozen=True)
class Held:
    coverage: float
    usual: float
    """Coverage of the usual interval; nan of more than one cheap model."""
    bias: float
    """Over the standard error."""
    decided: float
    """Coverage where the program decides by the data whether to mix."""


def held(world: World, n: int, studies: int, seed: int) -> Held:
    noise = np.random.default_rng([seed, n, WORLDS.index(world)])
    cheap = [*range(1, 1 + max(model for group, _ in world.groups for model in group))]
    inside, usual, decided, values = [], [], [], []
    for _ in range(studies):
        drawn = world.draw(noise, n)
        direct = [model for model in cheap if shared(drawn, model)]
        helping = [model for model in cheap if model not in direct]
        chosen = decide(drawn, LEVEL, NAMES).estimate
        # Nothing is estimated twice where all models are what is decided for.
        estimate = chosen if chosen.models == (*direct, *helping) else mixed(drawn, direct, LEVEL, helping)
        inside.append(abs(estimate.value) <= estimate.half_width)
        values.append(estimate.value)
        usual.append(abs(estimate.value) <= _usual(drawn) if len(cheap) == 1 else math.nan)
        decided.append(abs(chosen.value) <= chosen.half_width)
    bias = float(np.mean(values) / np.std(values))
    return Held(float(np.mean(inside)), float(np.mean(usual)), bias, float(np.mean(decided)))


def _usual(drawn: Values) -> float:
    pairs = drawn[~np.isnan(drawn).any(axis=1)]
    rho = float(np.corrcoef(pairs.T)[0, 1])
    return 1.96 * float(pairs[:, 0].std(ddof=1)) * math.sqrt((1 - rho**2) / len(pairs) + rho**2 / len(drawn))


@dataclass(frozen=True)
class Spread:
    """Of other quantities than means."""

    coverage: float
    alone: float
    """Of the expensive model's draws alone; an interval without an end holds what lies there."""
    width: float
    """Of the interval, over that of the expensive model's draws alone; the median of studies with both."""


QUANTITIES: Mapping[str, tuple[Callable[[Values], Quantity], float]] = {
    "variance": (lambda drawn: variance(drawn, LEVEL, NAMES), 1.0),
    "share below the 30 % quantile": (lambda drawn: share_below(drawn, float(stats.norm.ppf(0.3)), LEVEL, NAMES), 0.3),
    "median": (lambda drawn: quantile(drawn, 0.5, LEVEL, NAMES), 0.0),
}


def spread(name: str, n: int, studies: int, seed: int) -> Spread:
    """With one cheap model, rho 0.95."""
    estimate, truth = QUANTITIES[name]
    noise = np.random.default_rng([seed, n, [*QUANTITIES].index(name)])
    inside, alone, widths = [], [], []
    for _ in range(studies):
        each = estimate(WORLDS[0].draw(noise, n))
        inside.append((each.low is None or each.low <= truth) and (each.high is None or truth <= each.high))
        alone.append(each.plain is None or each.plain.low <= truth <= each.plain.high)
        if each.plain is not None and each.low is not None and each.high is not None:
            widths.append((each.high - each.low) / (each.plain.high - each.plain.low))
    return Spread(float(np.mean(inside)), float(np.mean(alone)), float(np.median(widths)) if widths else math.nan)


def plain_held(n: int, studies: int, seed: int) -> float:
    """Coverage of Student's interval of the expensive model alone."""
    noise = np.random.default_rng([seed, n])
    estimates = [plain(noise.standard_normal((n, 1)), LEVEL) for _ in range(studies)]
    return float(np.mean([abs(each.value) <= each.half_width for each in estimates]))
