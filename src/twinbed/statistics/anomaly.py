"""Is each of several simultaneous pairs faster than one pair alone, at which N, and which counters move with the rate?

The LDRD report's Table 3.1 raises the question: at some N > 1 the rate of a pair is above that of a single pair.  Each N is
compared with N = 1 by Welch's one-sided t (1947) of logarithms, with Holm's correction over all tested N, so that a mark is
wrong in at most alpha of studies. Each counter of its Table 3.2, up to 188, is compared with the rate of a pair over the same
runs by rank correlations. Benjamini and Hochberg's correction limits the expected share of false ones among the named counters.
A correlation is not a cause.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.special import stdtr, stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import logarithms, variance, welch_df
from twinbed.statistics.multiplicity import benjamini_hochberg, holm
from twinbed.statistics.rank_correlation import Correlation, kendall, spearman

LEAST = 2
"""Runs at each N."""


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
class Moving:
    """One counter over the runs."""

    counter: str
    runs: int
    """The number of runs that have both values."""
    spearman: Correlation | None
    """None where the counter or the rate does not vary, or fewer than three runs have both."""
    kendall: Correlation | None
    adjusted: float | None
    """Spearman's p-value after Benjamini and Hochberg, over all counters that vary."""
    adjusted_holm: float | None
    moves: bool


def faster(rates: Mapping[int, Sequence[float]], alpha: float = 0.05) -> list[Faster]:
    """Compares each N with N = 1, from the rates of a pair in each run.

    Raises ValueError without at least two runs at N = 1 and at each other N, and for rates that are not above 0.
    """
    if 1 not in rates:
        raise ValueError("no runs at N = 1, against which others are held")
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


def moving(rates: Sequence[float], counters: Mapping[str, Sequence[float | None]], alpha: float = 0.05) -> list[Moving]:
    """Correlates counters with the rate of a pair, run by run; None is a counter that a run does not have. The largest |rho|
    first."""
    correlations = {name: _correlations(rates, values) for name, values in counters.items()}
    varying = [name for name, (_runs, rho, _tau) in correlations.items() if rho is not None]
    p_values = [rho.p_value for _runs, rho, _tau in correlations.values() if rho is not None]
    shares = dict(zip(varying, benjamini_hochberg(p_values), strict=True))
    strict = dict(zip(varying, holm(p_values), strict=True))
    rows = [
        Moving(name, runs, rho, tau, shares.get(name), strict.get(name), name in shares and shares[name] <= alpha)
        for name, (runs, rho, tau) in correlations.items()
    ]
    return sorted(rows, key=lambda row: (-abs(row.spearman.value) if row.spearman else 1.0, row.counter))


def _correlations(rates: Sequence[float], values: Sequence[float | None]) -> tuple[int, Correlation | None, Correlation | None]:
    both = [(rate, value) for rate, value in zip(rates, values, strict=True) if value is not None]
    x, y = [rate for rate, _value in both], [value for _rate, value in both]
    return len(both), spearman(x, y), kendall(x, y)
