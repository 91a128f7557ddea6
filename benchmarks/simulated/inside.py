"""What is said of the insides of runs: drift, a run astray, stalls, and the error of one run's mean.

Series are autoregressions of 100 values with a standard deviation of 10 % of their mean; drift is that of their second half.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from twinbed.statistics.stalls import of_events
from twinbed.statistics.steady import changes, mean_error, settling

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


def series(noise: np.random.Generator, correlation: float, falls: np.ndarray) -> np.ndarray:
    """Runs in rows, one for each of ``falls``: by what share of its middle the rate changes from there to the end."""
    drawn = noise.standard_normal((len(falls), VALUES + 1))
    steps, state = math.sqrt(1 - correlation**2) * drawn[:, :-1], drawn[:, -1]
    values = np.empty((len(falls), VALUES))
    for at in range(VALUES):
        values[:, at] = state = correlation * state + steps[:, at]
    half = VALUES // 2
    trend = np.hstack([np.ones((len(falls), half)), 1 + np.outer(falls, np.arange(half) / (half - 1) - 0.5)])
    return np.asarray(trend * (1 + SPREAD * values))


def settled(correlation: float, runs: int, falls: float, astray: float, studies: int, seed: int) -> tuple[float, float]:
    """Shares of cells called drifting, and said to have one run that drifts. All runs change by ``falls`` in their second half,
    and the first of them by ``astray`` besides."""
    noise = np.random.default_rng([seed, runs, round(100 * correlation)])
    of_cell = [falls + (astray if at == 0 else 0.0) for at in range(runs)]
    drifts = changes(series(noise, correlation, np.tile(of_cell, studies))[:, VALUES // 2 :])
    found = [settling(cell, MARGIN, LEVEL) for cell in drifts.reshape(studies, runs).tolist()]
    return sum(each.settles is False for each in found) / studies, sum(each.astray is not None for each in found) / studies


def error_of_means(correlation: float, studies: int, seed: int) -> float:
    """The mean of the estimated variance of a run's mean, over the true one: (1 + r)/(1 - r) - 2 r (1 - r^n)/(n (1 - r)^2) over
    n, for values of unit variance."""
    noise, r, n = np.random.default_rng([seed, round(100 * correlation)]), correlation, VALUES
    true = SPREAD**2 / n * ((1 + r) / (1 - r) - 2 * r * (1 - r**n) / (n * (1 - r) ** 2))
    return float(np.mean([mean_error(run.tolist()) ** 2 for run in series(noise, r, np.zeros(studies))])) / true


def stalled(pauses: Pauses, events: int, means_s: Sequence[float], studies: int, seed: int) -> list[float]:
    """Shares of runs of so many random pauses that are said to stall, for each mean of them."""
    noise = np.random.default_rng([seed, events])
    found = [0] * len(means_s)
    for _ in range(studies):
        drawn = pauses(noise, events)
        for at, mean_s in enumerate(means_s):
            found[at] += bool(of_events(np.cumsum(drawn * mean_s / drawn.mean())))
    return [each / studies for each in found]
