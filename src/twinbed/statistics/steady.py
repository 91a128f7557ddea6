"""Are runs in a steady state, and from when: warm-up, drift inside runs, and what the mean of one run is worth.

Series of several runs, of equally many values each, in the order of time.

Warm-up: Welch's procedure (1983, in Lavenberg, Computer Performance Modeling Handbook, 6.4.1) averages the runs value by value,
so that noise goes down and the warm-up stays, and MSER-5 (White, Cobb and Spratt 2000, Proc. Winter Simulation Conf., 755)
finds its end: values in batches of BATCH, of which those at the start are cut off whose removal makes the standard error of the
rest least.  On a steady series it cuts off something by chance, where it changes most; what the cut does to a run is therefore
that of the cut which the other runs suggest.

Drift: Theil and Sen's slope (Sen 1968, J. Am. Stat. Assoc. 63:1379) of the second half of each run, as TriScale's test of
convergence has it (Jacob et al. 2021, J. Syst. Res. 1).  Values inside a run depend on each other, which makes its own interval
too short; slopes of different runs do not, so that Student's t of theirs says whether runs settle.

The mean of one run: non-overlapping batch means (Law 2015, Simulation Modeling and Analysis, 9.5.3), whose variance holds the
dependence between neighbours that is shorter than a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import mean_interval, variance, varies

Floats = NDArray[np.float64]

BATCH = 5
BATCHES = 10
LEAST = 40
"""Values that a series needs: eight batches of five."""


def mser5(values: Sequence[float]) -> int:
    """How many values to cut off at the start, at most half of them.

    >>> mser5([9.0] * 10 + [1.0, 2.0] * 45)
    10
    """
    batches = np.asarray(values[: len(values) // BATCH * BATCH], dtype=np.float64).reshape(-1, BATCH).mean(1)
    best, least = 0, math.inf
    for cut in range(len(batches) // 2 + 1):
        rest = batches[cut:]
        statistic = float(np.square(rest - rest.mean()).sum()) / len(rest) ** 2
        if statistic < least * (1 - 1e-12):
            best, least = cut, statistic
    return best * BATCH


def warm_ups(runs: Sequence[Sequence[float]]) -> list[float]:
    """By what share the mean of each run is more without its warm-up, whose end is found in the average of the other runs, so
    that it has no say in it. Series of shares of each run's own mean; a run without others has its own cut."""
    sums = np.sum(runs, axis=0)
    shares = []
    for run in runs:
        values = np.asarray(run, dtype=np.float64)
        cut = mser5(((sums - values) / (len(runs) - 1) if len(runs) > 1 else values).tolist())
        shares.append(float(values[cut:].mean() / values.mean()) - 1 if cut else 0.0)
    return shares


def change(values: Sequence[float]) -> float | None:
    """Over all the time of the values, by Theil and Sen's slope of means of BATCH, as a share of their median; None where that
    is 0. Counts of a few answers are too coarse to have slopes of their own."""
    means = np.asarray(values[: len(values) // BATCH * BATCH], dtype=np.float64).reshape(-1, BATCH).mean(1)
    middle = float(np.median(means))
    one, two = np.triu_indices(len(means), 1)
    slope = float(np.median((means[two] - means[one]) / (two - one)))  # scipy.stats takes a second to load
    return slope * len(means) / middle if middle else None


def mean_error(values: Sequence[float]) -> float:
    """The standard error of the mean of one run by its own series, of at least LEAST values."""
    batches = np.asarray(values[: len(values) // BATCHES * BATCHES], dtype=np.float64).reshape(BATCHES, -1).mean(1)
    return float(batches.std(ddof=1) / math.sqrt(BATCHES))


@dataclass(frozen=True, slots=True)
class Over:
    """The mean of a share over runs; the interval is Student's, the p-value two-sided of its being 0. Both None for one run."""

    mean: float
    interval: Bounds | None
    p_value: float | None


def over_runs(values: Sequence[float], level: float) -> Over:
    """Of at least one run."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return Over(mean, None, None)
    if not varies(values):
        return Over(mean, Bounds(mean, mean, level), 0.0 if mean else 1.0)
    t = mean / math.sqrt(variance(values) / n)
    return Over(mean, mean_interval(values, level), 2 * float(stdtr(n - 1, -abs(t))))


@dataclass(frozen=True, slots=True)
class Split:
    """Where the spread of runs' means comes from: standard deviations of one run's mean."""

    deviation: float
    """As observed, between runs."""
    within: float
    """What the series inside runs explains of it, at their length: repeatability."""
    between: float
    """What comes between runs beyond that; 0 where no more is observed than what is within."""


def split(means: Sequence[float], errors: Sequence[float]) -> Split:
    """Of at least two runs' means and standard errors: s_L^2 = s_d^2 - s_r^2/n of ISO 5725-2:2019, 7.4.5, where s_r^2/n is the
    mean square of the runs' own errors."""
    observed, within = variance(means), float(np.mean(np.square(errors)))
    return Split(math.sqrt(observed), math.sqrt(within), math.sqrt(max(0.0, observed - within)))


def best_seconds(split: Split, seconds: float, overhead_s: float) -> float | None:
    """How long runs should last for the least error of their mean in a given time, if each takes ``overhead_s`` besides:
    sampling in two stages (Cochran 1977, Sampling Techniques, 10.6), sqrt(overhead seconds) within/between. None where nothing
    comes between runs, so that longer is better."""
    return math.sqrt(overhead_s * seconds) * split.within / split.between if split.between else None
