"""Is each of several simultaneous pairs faster than one pair alone, at which N, and what moves with the rate?

The LDRD report's Table 3.1 raises the question: at some N > 1 the rate of a pair is above that of a single pair. Each N is
compared with N = 1 by Welch's one-sided t (1947) of logarithms, with Holm's correction over all tested N, so that a mark is
wrong in at most alpha of studies.

Its Table 3.2 has 188 counters. Every count grows with the work done, and the work done is the rate: so a count that says
nothing new correlates with the rate. Let R be the work of all pairs in a second, N the pairs, and y a count divided by the
work. A count of which a part goes with the work, a part with the time and a part with the time of each pair has

    y = a + b / R + c N / R,   a, b, c >= 0.

This is fitted by least squares of relative residuals under these bounds (Lawson and Hanson 1974, chapter 23; of three columns,
over all subsets of them). The leftover, y divided by the fit, is compared with the rate by rank correlations: a count that any
such mix explains has none, whatever its parts. Benjamini and Hochberg's correction (1995) limits the expected share of false
ones among those named. Three kinds of metrics are not tested. A metric is the response in another form if its logarithm is, but
for a constant and a tenth of its spread, that of the rate, of the work or of the inverse of either. The same holds for what the
workload itself reports and orders the runs as the rate does. A count that goes with the work or the time alone, but for less
than a hundredth of the spread, says nothing new.

A correlation is not a cause. A metric that changes with N for a reason of its own moves with a rate that changes with N. The
correlation at equal N, of ranks less their mean at each N, separates the two if runs at equal N differ enough.

Rank correlations, with ties: Spearman's rho and Kendall's tau-b, and tests of no correlation.

P-values are two-sided.  Spearman's is over all orders for at most EXACT pairs, tied or not, else by Student's t (Kendall and
Stuart, 31.19), as scipy's is for few pairs too.  Kendall's is scipy's: exact without ties for at most EXACT_KENDALL pairs, else
normal with the variance corrected for ties (Kendall 1970, Rank Correlation Methods, chapter 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import combinations, permutations
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import logarithms, midranks, variance, welch_df
from twinbed.statistics.multiplicity import benjamini_hochberg, holm

Floats = NDArray[np.float64]
LEAST = 2
"""Runs at each N."""
ANOTHER_FORM = 0.1
"""A metric is the response in another form if its logarithm is the rate's but for this share of the rate's standard
deviation."""
SAME_ORDER = 0.95
"""Other values that the workload reports for the same requests, such as percentiles of their time, are the rate in another form
if their rank correlation with the rate is at least this."""
FEWEST = 5
"""The fewest runs with both values, so that a fit of three parts leaves something."""
DIGITS = 12
"""Digits kept of a fit's leftover, which is about 1: equal counts at equal N stay equal, however they were rounded before."""
EVEN = 0.01
"""A metric that varies by less than this share of the rate's variation (standard deviations of logarithms) does not vary."""


class Measure(StrEnum):
    """The kind of a value, which decides what can explain it."""

    PER_WORK = "per work"
    """A count or a time divided by the work done, or the time of a unit of work."""
    LEVEL = "level"
    """Neither grows with the work nor with the time: a share, a size."""


class Given(NamedTuple):
    """One metric's values, run by run."""

    measure: Measure
    values: Sequence[float | None]
    """None is a value that a run does not have."""
    reported: bool = False
    """True if the workload itself reports it, as it reports the rate."""


class Form(StrEnum):
    """The response under other names."""

    RATE = "the rate in another form"
    WORK = "the work done in another form"
    GOES_WITH_WORK = "it goes with the work alone"
    GOES_WITH_TIME = "it goes with the time alone"


@dataclass(frozen=True, slots=True)
class Faster:
    """One N compared with N = 1."""

    n: int
    ratio: float
    """The ratio of geometric means of the rate of a pair."""
    interval: Bounds
    """Two-sided, at 1 - alpha."""
    p_value: float
    """One-sided, of a ratio of at most 1."""
    adjusted: float
    """After Holm's correction."""
    faster: bool


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts of a fitted count, of its sum over the runs; their sum is 1."""

    work: float
    time: float
    pairs: float
    """The part that goes with the time of each pair."""


@dataclass(frozen=True, slots=True)
class Moving:
    """One metric over the runs."""

    metric: str
    runs: int
    """The number of runs that have both values."""
    per_work: Correlation | None
    """Spearman's correlation of the raw values with the rate."""
    shares: Shares | None
    """Only for values divided by work."""
    spearman: Correlation | None
    """Spearman's correlation of what work and time do not explain. None if nothing varies, fewer than FEWEST runs have both
    values, or the metric is the response in another form."""
    kendall: Correlation | None
    at_equal_n: Correlation | None
    """Like ``spearman``, but of ranks less their mean at each N."""
    elasticity: float | None
    """The slope of logarithms: per cent of change beyond work and time for one per cent of the rate."""
    adjusted: float | None
    """Spearman's p-value after Benjamini and Hochberg, over all metrics that are tested."""
    adjusted_holm: float | None
    moves: bool
    form: Form | None = None
    """Why it is not tested."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one combination of levels, entry by entry."""

    rates: Sequence[float]
    """The rate of a pair."""
    n: Sequence[int]
    work: Sequence[float]
    """The work of all pairs in a second, above 0, in any unit."""


def faster(rates: Mapping[int, Sequence[float]], alpha: float = 0.05) -> list[Faster]:
    """Compare each N with N = 1, from the rates of a pair in each run. Raises ValueError without at least two runs at N = 1 and
    at each other N, and for rates that are not above 0."""
    if 1 not in rates:
        raise ValueError("no runs at N = 1, which other N are compared with")
    for n, values in rates.items():
        if len(values) < LEAST:
            raise ValueError(f"{len(values)} run at N = {n}, expected at least {LEAST}")
        if min(values) <= 0:
            raise ValueError(f"a rate of {min(values):g} at N = {n}, expected above 0")
    tested = sorted(n for n in rates if n != 1)
    ratios = [_ratio(rates[n], rates[1], alpha) for n in tested]
    adjusted = holm([p_value for _ratio, _interval, p_value in ratios])
    return [Faster(n, *rest, p, p <= alpha) for n, rest, p in zip(tested, ratios, adjusted, strict=True)]


def _ratio(values: Sequence[float], single: Sequence[float], alpha: float) -> tuple[float, Bounds, float]:
    x, y = logarithms(values), logarithms(single)
    a, b, difference = variance(x) / len(x), variance(y) / len(y), fmean(x) - fmean(y)
    ratio = math.exp(difference)
    if a + b == 0:
        return ratio, Bounds(ratio, ratio, 1 - alpha), 0.0 if difference > 0 else 1.0
    error, df = math.sqrt(a + b), welch_df(a, len(x), b, len(y))
    half = float(stdtrit(df, 1 - alpha / 2)) * error
    interval = Bounds(math.exp(difference - half), math.exp(difference + half), 1 - alpha)
    return ratio, interval, float(stdtr(df, -difference / error))


def moving(runs: Runs, metrics: Mapping[str, Given], alpha: float = 0.05) -> list[Moving]:
    """Compare metrics with the rate of a pair, run by run. The named metrics come first, then the largest |rho|. Raises
    ValueError for rates or work that are not above 0."""
    if min(*runs.rates, *runs.work) <= 0:
        raise ValueError("a rate of 0, expected above 0")
    rows = [_compared(name, runs, *given) for name, given in metrics.items()]
    p_values = [row.spearman.p_value for row in rows if row.spearman]
    shares, strict = iter(benjamini_hochberg(p_values)), iter(holm(p_values))
    judged = [_judged(row, next(shares), next(strict), alpha) if row.spearman else row for row in rows]
    return sorted(judged, key=lambda row: (not row.moves, -abs(row.spearman.value) if row.spearman else 1.0, row.metric))


def _judged(row: Moving, adjusted: float, adjusted_holm: float, alpha: float) -> Moving:
    return replace(row, adjusted=adjusted, adjusted_holm=adjusted_holm, moves=adjusted <= alpha)


def _compared(name: str, runs: Runs, measure: Measure, values: Sequence[float | None], reported: bool) -> Moving:
    both = [at for at, value in enumerate(values) if value is not None]
    y = np.array([value for value in values if value is not None])
    rate, work = np.asarray(runs.rates, dtype=np.float64)[both], np.asarray(runs.work, dtype=np.float64)[both]
    n = np.asarray(runs.n)[both]
    untested = Moving(name, len(both), None, None, None, None, None, None, None, None, False)
    if len(both) < FEWEST or np.ptp(y) == 0 or np.ptp(rate) == 0:
        return untested
    as_is = spearman(y.tolist(), rate.tolist())
    form = _form(measure, y, rate, work)
    if form is None and reported and as_is is not None and abs(as_is.value) >= SAME_ORDER:
        form = Form.RATE
    if form:
        return replace(untested, per_work=as_is, form=form)
    shares = None
    if measure is Measure.PER_WORK and y.min() >= 0:
        parts = np.column_stack([np.ones(len(y)), 1 / work, n / work])
        fit, shares = _explained(y, parts)
        y = np.round(y / fit, DIGITS)
        if _deviation(y) <= EVEN * _deviation(np.log(rate)):
            return replace(untested, per_work=as_is, shares=shares)
    x, left = rate.tolist(), y.tolist()
    return replace(
        untested,
        per_work=as_is,
        shares=shares,
        spearman=spearman(x, left),
        kendall=kendall(x, left),
        at_equal_n=_at_equal_n(rate, y, n),
        elasticity=_slope(np.log(rate), np.log(y)) if y.min() > 0 else None,
    )


def _slope(x: Floats, y: Floats) -> float:
    apart = x - x.mean()
    return float(apart @ y / (apart @ apart))


def _form(measure: Measure, y: Floats, rate: Floats, work: Floats) -> Form | None:
    if y.min() <= 0:
        return None
    per_work = measure is Measure.PER_WORK
    of_y, of_rate, of_work = np.log(y), np.log(rate), np.log(work)
    spread = _deviation(of_rate)
    if per_work and _deviation(of_y) <= EVEN * spread:
        return Form.GOES_WITH_WORK
    if per_work and _deviation(of_y + of_work) <= ANOTHER_FORM * spread:
        return Form.GOES_WITH_TIME
    for form, of in ((Form.RATE, of_rate), (Form.WORK, of_work)):
        if min(_deviation(of_y - of), _deviation(of_y + of)) <= ANOTHER_FORM * _deviation(of):
            return form
    return None


def _deviation(x: Floats) -> float:
    apart = x - x.mean()
    return math.sqrt(float(apart @ apart) / len(x))


def _explained(y: Floats, parts: Floats) -> tuple[Floats, Shares]:
    """Return the fit, above 0, and the parts' shares of it."""
    fit = np.full(len(y), y.mean())
    coefficients = np.zeros(parts.shape[1])
    for _ in range(2):  # the first is not weighted; the second has the weights that relative residuals need
        coefficients = _bounded(parts / fit[:, None], y / fit)
        fit = parts @ coefficients
    sums = coefficients * parts.sum(axis=0)
    work, time, pairs = (sums / sums.sum()).tolist()
    return fit, Shares(work, time, pairs)


def _bounded(columns: Floats, y: Floats) -> Floats:
    """Solve least squares with coefficients of at least 0, for a few columns of numbers above 0: the best subset whose own
    least squares are all above 0."""
    best, least = np.zeros(columns.shape[1]), math.inf
    scale = np.linalg.norm(columns, axis=0)
    scaled = columns / scale
    within: list[set[int]] = []
    for size in range(columns.shape[1], 0, -1):
        for chosen in combinations(range(columns.shape[1]), size):
            if any(subset.issuperset(chosen) for subset in within):
                continue  # Fewer columns fit no better.
            some = scaled[:, chosen]
            solved, _squares, rank, _values = np.linalg.lstsq(some, y, rcond=None)
            if rank < size or solved.min() <= 0:
                continue
            within.append(set(chosen))
            left = y - some @ solved
            if (squares := float(left @ left)) < least:
                best, least = np.zeros(columns.shape[1]), squares
                best[list(chosen)] = solved / scale[list(chosen)]
    return best


def _at_equal_n(rate: Floats, y: Floats, n: NDArray[np.int_]) -> Correlation | None:
    """Return Spearman's rho within strata: ranks less their mean at each N, by Student's t with a degree less for each N."""
    rate_ranks, y_ranks = np.zeros(len(y)), np.zeros(len(y))
    levels = np.unique(n)
    for level in levels:
        of = n == level
        rate_ranks[of], y_ranks[of] = (midranks(series[of].tolist()) - (of.sum() + 1) / 2 for series in (rate, y))
    scale, df = math.sqrt(float(rate_ranks @ rate_ranks) * float(y_ranks @ y_ranks)), len(y) - len(levels) - 1
    if scale == 0 or df < 1:
        return None
    rho = max(-1.0, min(1.0, float(rate_ranks @ y_ranks) / scale))
    # All orders within the strata are equally likely: no p-value is less than that of two of them.
    least = 2 * math.exp(-sum(math.lgamma(float(np.sum(n == level)) + 1) for level in levels))
    p_value = 2 * float(stdtr(df, -abs(rho) * math.sqrt(df / (1 - rho * rho)))) if abs(rho) < 1 else 0.0
    return Correlation(rho, max(least, p_value))


EXACT, EXACT_KENDALL = 8, 49
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Correlation:
    value: float
    """From -1 to 1."""
    p_value: float


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """Return rho; None for fewer than three pairs, and where either does not vary."""
    x_ranks, y_ranks = midranks(x) - (len(x) + 1) / 2, midranks(y) - (len(y) + 1) / 2
    scale = math.sqrt(float(x_ranks @ x_ranks) * float(y_ranks @ y_ranks))
    if len(x) < 3 or scale == 0:
        return None
    rho = max(-1.0, min(1.0, float(x_ranks @ y_ranks) / scale))
    if len(x) <= EXACT:
        all_of = x_ranks[_orders(len(x))] @ y_ranks / scale
        return Correlation(rho, float(np.mean(np.abs(all_of) >= abs(rho) - ROUNDING)))
    if abs(rho) == 1:
        return Correlation(rho, 0.0)
    t = abs(rho) * math.sqrt((len(x) - 2) / (1 - rho * rho))
    return Correlation(rho, min(1.0, 2 * float(stdtr(len(x) - 2, -t))))


@cache
def _orders(n: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(n))), dtype=np.intp)


def kendall(x: Sequence[float], y: Sequence[float]) -> Correlation | None:
    """Return tau-b; None for fewer than three pairs, and where either does not vary."""
    n = len(x)
    if n < 3 or min(np.ptp(x), np.ptp(y)) == 0:
        return None
    from scipy.stats import kendalltau

    exact = n <= EXACT_KENDALL and len(set(x)) == len(set(y)) == n
    tau = kendalltau(x, y, method="exact" if exact else "asymptotic")
    return Correlation(float(tau.statistic), float(tau.pvalue))
