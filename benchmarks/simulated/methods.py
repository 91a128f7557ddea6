"""Every interval of the program: its assumption, the true value, the program's own function and the one on arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulated.arrays import (
    LEVEL,
    Limits,
    delta_interval,
    deviation_ratio_interval,
    fairness_interval,
    mean_interval,
    median_ratio_interval,
    program_delta_interval,
    quantile_interval,
    ratio_interval,
)
from benchmarks.simulated.populations import Population
from twinbed.statistics import bootstrap, fairness, moments, quantile, ratio, spread
from twinbed.statistics.bounds import Bounds

UPPER = 0.9
TRUE_RATIO = 1.2
"""Of the testbed's values to the reference's, where an interval is of a ratio."""


@dataclass(frozen=True)
class Method:
    """An interval at LEVEL. ``at_once`` is of arrays, ``program`` of one study: the program's own."""

    name: str
    assumes: str
    truth: Callable[[Population], float]
    program: Callable[[list[float], list[float]], Bounds | None]
    at_once: Callable[[np.ndarray, np.ndarray], Limits] | None
    """None where only the program's own is used, on fewer studies."""
    holds: Callable[[Population], bool]
    """Whether what it assumes is so."""
    ratio: Callable[[Population], float] = lambda of: TRUE_RATIO
    """Of the testbed's values to the reference's."""


def _program_ratio(x: list[float], y: list[float]) -> Bounds | None:
    found = ratio.ratio_test(x, y, 0.1, 1 - LEVEL)
    return found.wide if found else None


def _half_a_margin(of: Population) -> float:
    """About a standard deviation apart: with a fixed ratio some populations would not overlap at all."""
    return 1 + of.margin / 2


def _one(of: Population) -> float:
    return 1.0


def _true_delta(of: Population) -> float:
    """By a large sample."""
    noise = np.random.default_rng(0)
    one, two = (np.sort(of.draw(noise, 1, 1_000_000)[0]) for _ in range(2))
    if not of.independent:
        one, two = (np.sort(of.draw(noise, 1_000_000, 1)[:, 0]) for _ in range(2))
    one = _half_a_margin(of) * one
    below, upto = np.searchsorted(two, one, "left"), np.searchsorted(two, one, "right")
    return float((below + upto).mean() / len(two) - 1)


def _independent(of: Population) -> bool:
    return of.independent


METHODS = (
    Method(
        "mean, Student's t",
        "normal",
        lambda of: of.mean,
        lambda x, y: moments.mean_interval(x, LEVEL),
        mean_interval,
        lambda of: of.name == "normal",
        _one,
    ),
    Method(
        "ratio of means: Welch on logarithms; with zeros Fieller",
        "logarithms normal",
        lambda of: TRUE_RATIO,
        _program_ratio,
        ratio_interval,
        lambda of: of.name in ("normal", "log-normal"),
    ),
    Method(
        "ratio of means, BCa bootstrap",
        "independent, many values",
        lambda of: TRUE_RATIO,
        lambda x, y: bootstrap.ratio_interval(x, y, LEVEL),
        None,
        lambda of: False,
    ),
    Method(
        "median, order statistics",
        "independent",
        lambda of: of.median,
        lambda x, y: quantile.quantile_interval(x, 0.5, LEVEL),
        lambda x, y: quantile_interval(x, 0.5),
        _independent,
        _one,
    ),
    Method(
        "quantile 0.9, order statistics",
        "independent",
        lambda of: of.upper,
        lambda x, y: quantile.quantile_interval(x, UPPER, LEVEL),
        lambda x, y: quantile_interval(x, UPPER),
        _independent,
        _one,
    ),
    Method(
        "ratio of medians, Price and Bonett",
        "independent, one mode",
        lambda of: TRUE_RATIO,
        lambda x, y: quantile.median_ratio_interval(x, y, LEVEL),
        median_ratio_interval,
        lambda of: of.independent and of.name in ("normal", "log-normal"),
    ),
    Method(
        "ratio of standard deviations, Bonett",
        "independent, many values",
        lambda of: TRUE_RATIO,
        lambda x, y: spread.deviation_ratio_interval(x, y, LEVEL),
        deviation_ratio_interval,
        lambda of: of.name == "normal",
    ),
    Method(
        "Cliff's delta, Newcombe",
        "independent",
        _true_delta,
        program_delta_interval,
        delta_interval,
        _independent,
        _half_a_margin,
    ),
    Method(
        "fairness of n flows, Jain's index",
        "independent, many flows",
        lambda of: of.fairness,
        lambda x, y: fairness.jain_interval(x, LEVEL),
        fairness_interval,
        lambda of: of.name == "normal",
    ),
)
