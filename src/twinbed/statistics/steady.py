"""Steady state of runs: warm-up, drift inside runs, and how exact the mean of one run is.

Series of several runs, of equally many values each, in the order of time.

Warm-up: Welch's procedure (1983, in Lavenberg, Computer Performance Modeling Handbook, 6.4.1) averages the runs value by value,
so that noise goes down and the warm-up stays. MSER-5 (White, Cobb and Spratt 2000, Proc. Winter Simulation Conf., 755) finds
its end: in batches of BATCH values, it cuts off those at the start whose removal makes the standard error of the rest least. On
a steady series it cuts off something by chance, at the largest changes. The effect of a cut on a run is therefore measured with
the cut that the other runs suggest.

Drift: Theil and Sen's slope (Sen 1968, J. Am. Stat. Assoc. 63:1379) of the second half of each run, as TriScale's test of
convergence has it (Jacob et al. 2021, J. Syst. Res. 1).  Values inside a run depend on each other, which makes its own interval
too short. Slopes of different runs do not, so that Student's t of these slopes shows whether runs settle.

One run that drifts among others that do not: Grubbs's test (1969, Technometrics 11:1) of the farthest, whose p-value is
Bonferroni's of Student's t of its deviation from the others.

The mean of one run: its error by the spectrum at frequency 0 of an autoregression (Heidelberger and Welch 1981, Commun. ACM
24:233; coda's ``spectrum0.ar``), fitted by Yule and Walker, its order by Akaike's criterion.  Neighbours that resemble each
other count less: for 100 values with a correlation of 0.7 the estimated variance is 0.94 of the true one, with 0.9 it is 0.79
(docs/coverage.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import mean_interval, variance, varies

Floats = NDArray[np.float64]

BATCH = 5
LEAST = 40
"""The fewest values of a series: eight batches of five."""
BINS = 100
PER_BIN = 4
"""The fewest answers a part of a run in the mean: fewer make its rate a matter of chance, so fewer parts are taken."""
LEAST_ALONE = 4
"""The fewest runs among which one can be distinguished: of three, any two that are close make the third far."""


@dataclass(frozen=True, slots=True)
class Series:
    """One run's rates over equal parts of its time, and how long they took together."""

    rates: Sequence[float]
    seconds: float


def rates_of_answers(begun_ns: NDArray[np.int64], lasted_s: Floats) -> Series | None:
    """Count answers complete in equal parts of the time from the first request to the last answer; None for too few."""
    bins = min(BINS, len(begun_ns) // PER_BIN)
    if bins < LEAST:
        return None
    ends = (begun_ns - begun_ns.min()) / 1e9 + lasted_s
    last = float(ends.max())
    counts, _ = np.histogram(ends, bins=bins, range=(0.0, last))
    return Series((counts * bins / last).tolist(), last)


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float)


def rates_of_intervals(rows: Iterable[Mapping[str, object]]) -> Series | None:
    """Return bits a second of all clients together, as their servers counted them. None for too few intervals, or clients that
    do not have the same ones. Rows of other tools than iperf3 have other columns."""
    times: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        start, done, seconds = row.get("start_s"), row.get("bytes"), row.get("seconds")
        if row.get("end") == "server" and _number(start) and _number(done) and _number(seconds) and seconds:
            times[round(start)].append((done, seconds))
    if len(times) < LEAST or len({len(of_interval) for of_interval in times.values()}) > 1:
        return None
    rates = [8 * math.fsum(done / seconds for done, seconds in times[at]) for at in sorted(times)]
    return Series(rates, math.fsum(fmean(seconds for _, seconds in of_interval) for of_interval in times.values()))


def mser5(values: Sequence[float]) -> int:
    """Return how many values to cut off at the start, at most half of them.

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
    """Return by what share the mean of each run grows without its warm-up. The end of a run's warm-up is found in the average
    of the other runs, so that the run itself has no say in it. Series are shares of each run's own mean; a run without others
    has its own cut."""
    sums = np.sum(runs, axis=0)
    shares = []
    for run in runs:
        values = np.asarray(run, dtype=np.float64)
        cut = mser5(((sums - values) / (len(runs) - 1) if len(runs) > 1 else values).tolist())
        shares.append(float(values[cut:].mean() / values.mean()) - 1 if cut else 0.0)
    return shares


def changes(runs: Floats) -> Floats:
    """Return each run's (row's) change over all its time, as a share of its median; NaN if that is 0. It is by Theil and Sen's
    slope of means of BATCH: counts of a few answers are too coarse to have slopes of their own."""
    means = runs[:, : runs.shape[1] // BATCH * BATCH].reshape(len(runs), -1, BATCH).mean(2)
    middles = np.median(means, axis=1)
    first, second = np.triu_indices(means.shape[1], 1)
    slopes = np.median((means[:, second] - means[:, first]) / (second - first), axis=1)  # scipy.stats takes a second to load
    relative: Floats = np.divide(slopes * means.shape[1], middles, out=np.full(len(runs), np.nan), where=middles != 0)
    return relative


def change(values: Sequence[float]) -> float | None:
    """Return the change (``changes``) of one run; None if its median is 0."""
    (value,) = changes(np.asarray([values], dtype=np.float64)).tolist()
    return None if math.isnan(value) else value


def drift(rates: Sequence[float]) -> float | None:
    """Return the change over the second half of a run."""
    return change(rates[len(rates) // 2 :])


def mean_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of one run by its own series, of at least LEAST values."""
    series = np.asarray(values, dtype=np.float64)
    n = len(series)
    series = series - series.mean()
    orders = math.floor(10 * math.log10(n))
    products = np.array([series[: n - lag] @ series[lag:] for lag in range(orders + 1)]) / n
    if not products[0]:
        return 0.0
    best, spectrum = math.inf, 0.0
    for order in range(orders + 1):
        lags = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
        weights = np.linalg.solve(products[lags], products[1 : order + 1]) if order else np.empty(0)
        noise = float(products[0] - weights @ products[1 : order + 1])
        criterion = n * math.log(noise) + 2 * order if noise > 0 else math.inf
        if criterion < best:
            best, spectrum = criterion, noise * n / (n - order - 1) / (1 - float(weights.sum())) ** 2
    return math.sqrt(spectrum / n)


@dataclass(frozen=True, slots=True)
class Alone:
    """The value that is farthest from the others."""

    at: int
    value: float
    others: float
    """The mean of the others."""
    p_value: float


def alone(values: Sequence[float]) -> Alone | None:
    """Apply Grubbs's test, two-sided; None for fewer than LEAST_ALONE values, or values that do not vary."""
    n = len(values)
    if n < LEAST_ALONE or not varies(values):
        return None
    centre, deviation = fmean(values), math.sqrt(variance(values))
    at = max(range(n), key=lambda place: abs(values[place] - centre))
    g = abs(values[at] - centre) / deviation
    others = (math.fsum(values) - values[at]) / (n - 1)
    left = (n - 1) ** 2 - n * g * g
    t = math.sqrt(n * (n - 2) * g * g / left) if left > 0 else math.inf
    return Alone(at, values[at], others, min(1.0, 2 * n * float(stdtr(n - 2, -t))))


@dataclass(frozen=True, slots=True)
class Over:
    """The mean of a share over runs; the interval is Student's, the p-value two-sided of its being 0. Both None for one run."""

    mean: float
    interval: Bounds | None
    p_value: float | None


def over_runs(values: Sequence[float], level: float) -> Over:
    """Summarise the values of at least one run."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return Over(mean, None, None)
    if not varies(values):
        return Over(mean, Bounds(mean, mean, level), 0.0 if mean else 1.0)
    t = mean / math.sqrt(variance(values) / n)
    return Over(mean, mean_interval(values, level), 2 * float(stdtr(n - 1, -abs(t))))


@dataclass(frozen=True, slots=True)
class Settling:
    """The verdict on whether runs settle. ``settles`` is False if a drift of more than the margin is shown, True if one is
    ruled out, and None if neither is."""

    over: Over
    settles: bool | None
    astray: Alone | None
    """The one run shown to drift by more than the margin, and to differ from the others by more than that."""


def settling(drifts: Sequence[float], margin: float, level: float) -> Settling:
    """Judge the drifts of at least one run. At most 1 - ``level`` of steady cells are called drifting, and as many are reported
    to have one run that drifts."""
    # A median slope is 0 where answers are few and their counts tie: 0 in all runs says nothing of how runs differ.
    over = over_runs(drifts, level) if any(drifts) else Over(0.0, None, None)
    shown = over.p_value is not None and over.p_value <= 1 - level and abs(over.mean) > margin
    within = over.interval is not None and -margin <= over.interval.low and over.interval.high <= margin
    farthest = alone(drifts)
    if farthest is not None:
        least = min(abs(farthest.value), abs(farthest.value - farthest.others))
        if farthest.p_value > 1 - level or least <= margin:
            farthest = None
    return Settling(over, False if shown else True if within else None, farthest)


@dataclass(frozen=True, slots=True)
class Split:
    """Where the spread of runs' means comes from: standard deviations of one run's mean."""

    deviation: float
    """As observed, between runs."""
    within: float
    """The part that the series inside runs explain, at their length: repeatability."""
    between: float
    """The part between runs beyond that; 0 if no more is observed than within."""


def split(means: Sequence[float], errors: Sequence[float]) -> Split:
    """Split the spread of at least two runs' means, given their standard errors. s_L^2 = s_d^2 - s_r^2/n of ISO 5725-2:2019,
    7.4.5, where s_r^2/n is the mean square of the runs' own errors."""
    observed, within = variance(means), float(np.mean(np.square(errors)))
    return Split(math.sqrt(observed), math.sqrt(within), math.sqrt(max(0.0, observed - within)))


def best_seconds(split: Split, seconds: float, overhead_s: float) -> float | None:
    """Return how long runs should last for the least error of their mean in a given time, if each takes ``overhead_s`` in
    addition. Sampling in two stages (Cochran 1977, Sampling Techniques, 10.6): sqrt(overhead seconds) within/between. None if
    nothing comes between runs, so that longer is better."""
    return math.sqrt(overhead_s * seconds) * split.within / split.between if split.between else None


def in_budget(split: Split, seconds: float, overhead_s: float, length: float, budget_s: float) -> tuple[int, float]:
    """Return how many runs of ``length`` fit into a budget, at least one, and the standard error of their mean. ``seconds`` is
    the length that ``split`` was measured at. Variation inside runs averages out with their length, variation between them does
    not."""
    runs = max(1, math.floor(budget_s / (length + overhead_s)))
    return runs, math.sqrt((split.between**2 + split.within**2 * seconds / length) / runs)
