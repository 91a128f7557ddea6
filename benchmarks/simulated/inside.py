"""What is said of the insides of runs: drift, a run astray, stalls, and the error of one run's mean.

Series are autoregressions of 100 values with a standard deviation of 10 % of their mean; drift is that of their second half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from twinbed.statistics.stalls import of_events
from twinbed.statistics.steady import drift, mean_error, settling

VALUES = 100
SPREAD = 0.1
MARGIN = 0.1
LEVEL = 0.95
Pauses = Callable[[np.random.Generator, int], np.ndarray]

PAUSES: Mapping[str, Pauses] = {
    "exponential": lambda noise, n: noise.exponential(1.0, n),
    "log-normal, sigma 1": lambda noise, n: noise.lognormal(0.0, 1.0, n),
    "log-normal, sigma 1.5": lambda noise, n: noise.lognormal(0.0, 1.5, n),
    "Pareto, index 1.5": lambda noise, n: 1 + noise.pareto(1.5, n),
}


def series(noise: np.random.Generator, correlation: float, falls: float = 0.0) -> np.ndarray:
    """One run's; ``falls``: by what share of its middle the rate changes from there to the end."""
    steps = noise.normal(0.0, math.sqrt(1 - correlation**2), VALUES)
    values, state = np.empty(VALUES), noise.normal()
    for at, step in enumerate(steps):
        values[at] = state = correlation * state + step
    half = VALUES // 2
    trend = np.concatenate([np.ones(half), 1 + falls * (np.arange(half) / (half - 1) - 0.5)])
    return trend * (1 + SPREAD * values)


def settled(correlation: float, runs: int, falls: float, astray: float, studies: int, seed: int) -> tuple[float, float]:
    """Shares of cells called drifting, and said to have one run that drifts. All runs change by ``falls`` in their second half,
    and the first of them by ``astray`` besides."""
    noise = np.random.default_rng([seed, runs, round(100 * correlation)])
    never = one = 0
    for _ in range(studies):
        changes = [falls + (astray if at == 0 else 0.0) for at in range(runs)]
        drifts = [drift(series(noise, correlation, change).tolist()) or 0.0 for change in changes]
        found = settling(drifts, MARGIN, LEVEL)
        never += found.settles is False
        one += found.astray is not None
    return never / studies, one / studies


def error_of_means(correlation: float, studies: int, seed: int) -> float:
    """The mean of the estimated variance of a run's mean, over the true one: (1 + r)/(1 - r) - 2 r (1 - r^n)/(n (1 - r)^2) over
    n, for values of unit variance."""
    noise, r, n = np.random.default_rng([seed, round(100 * correlation)]), correlation, VALUES
    true = SPREAD**2 / n * ((1 + r) / (1 - r) - 2 * r * (1 - r**n) / (n * (1 - r) ** 2))
    return float(np.mean([mean_error(series(noise, r).tolist()) ** 2 for _ in range(studies)])) / true


def stalled(pauses: Pauses, events: int, mean_s: float, studies: int, seed: int) -> float:
    """Share of runs of so many random pauses of a mean of ``mean_s`` that are said to stall."""
    noise = np.random.default_rng([seed, events])
    found = 0
    for _ in range(studies):
        drawn = pauses(noise, events)
        found += bool(of_events(np.cumsum(drawn * mean_s / drawn.mean())))
    return found / studies
