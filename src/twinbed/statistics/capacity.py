"""How many fit: the largest N that meets an objective, such as loss of at most 1 % or 90 % of the rate of a single pair.

For each N a one-sided t test compares the mean of its runs with the bound. If the bound is a share of the mean at N = 1, the
test is Welch's (1947, Biometrika 34:28) of mean(N) - share mean(1). The confidence is 1 less the p-value. A single pair may be
slower than each of several, as where a CPU sleeps between its packets. If another N has a significantly better mean than N = 1
(Welch's test, corrected by Bonferroni for the number of N), the share is of the best mean, and the sentence reports it. An
objective is a promise kept at every N up to the one named. Tests therefore go up from the smallest N and end at the first N
that does not show it, each at the full alpha. In such a fixed sequence, the chance of naming an N beyond the capacity is at
most alpha (Maurer, Hothorn and Lehmacher 1995). The same sequence down from the largest N shows which N fail. The interval of
the capacity is between the two, at alpha / 2 each. The knee is where a monotone regression of the means over N, straight
between tested N, meets the bound.

A metric that must not exceed a bound and is never negative, such as a loss, is far from normal: 0 in most runs, large in a rare
one. A few such runs never prove that the mean is small. After n runs without loss, a mean share of up to 1 - 0.05^(1/n) is
possible at 95 %: 45 % for five runs (Clopper and Pearson 1934, Biometrika 26:404). Few runs can show how *most* runs are.  An N
therefore keeps or fails the objective for such a metric only if the sign test (Arbuthnot 1710) also shows that more than half
of all runs do. All n of n runs make that 1 - 2^-n sure, 96.9 % for five.  Field ``kept`` counts the runs that keep it,
``share`` is their least share of all runs.  A rare run that does not is in neither: the sentence gives how many there may be.

Limits: means are assumed to be normal, but for that. Nothing is stated about N between tested ones or above the largest.

Monotone regression: the monotone sequence nearest to the values by weighted least squares, by scipy.

Values are in the order of the variable they depend on, and ties in it are already averaged.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
from scipy.special import bdtr, betaincinv, stdtr

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import mean_interval, variance, varies, welch_df

LEAST = 2
"""Runs at each N."""
MOST = 1000
"""More runs are not proposed."""
MOST_OPEN = 3
"""Inconclusive N that are reported one by one."""
ROUNDING = 1e-12
"""Share of the bound that a mean of equal values may miss it by."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A condition on the mean: at most or at least ``bound``. With ``relative`` the bound is ``bound`` times the mean at N = 1,
    or at the best N if another is significantly better."""

    bound: float
    at_most: bool
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One tested N."""

    n: int
    runs: int
    mean: float
    interval: Bounds
    fitted: float
    """By the monotone regression."""
    confidence: float
    """Confidence that the objective holds at this N: 1 less the one-sided p-value."""
    keeps: float
    """The least confidence of this and all smaller N."""
    fails: float
    """The least confidence that it does not hold, of this and all larger N."""
    kept: int
    """Runs that keep the objective by themselves."""
    share: float | None
    """The least share of all runs that do, at the level (Clopper and Pearson); None where means alone are compared."""
    more: int | None
    """About how many more runs like these would settle it; None if it is decided, or MOST would not do."""


@dataclass(frozen=True, slots=True)
class Capacity:
    objective: Objective
    level: float
    steps: tuple[Step, ...]
    bound: float
    """In the metric's unit."""
    reference: int | None
    """The N whose mean the bound is a share of; None where it is no share."""
    keeps: int | None
    """The largest N shown to keep it, at ``level``, with all below it; None where not even the least is."""
    fails: int | None
    """The least N shown not to, at ``level``, with all above it; None where none is."""
    low: int
    """The interval's lower end; 0 where not even the least N is shown to keep it."""
    high: int | None
    """The upper end; None if no N is shown to fail: then the capacity is only known to be "at least"."""
    knee: float | None
    """Where the regression meets the bound; None where it does not between the least and the largest N."""


def fewest_of_a_loss(level: float) -> int:
    """Return the fewest runs at an N that can show a loss is kept, whatever they lose: all n of n are 1 - 2^-n sure."""
    return math.ceil(round(-math.log2(1 - level), 9))


def capacity(samples: Mapping[int, Sequence[float]], objective: Objective, level: float = 0.95) -> Capacity:
    """Find the capacity from the values of runs by N. Raises ValueError for an N below 1 or with fewer than LEAST runs, and for
    a relative objective without runs at N = 1, or with a mean there that is not above 0."""
    _check(samples, objective)
    tested = sorted(samples)
    reference = _reference(samples, objective, level) if objective.relative else None
    bound = objective.bound if reference is None else objective.bound * fmean(samples[reference])
    by_runs = _is_loss(samples, objective)
    confidences = [_confidence(samples, n, objective, reference) for n in tested]
    failing = [1 - confidence for confidence in confidences]
    if by_runs:
        signs = [_signs(samples[n], objective) for n in tested]
        confidences = [min(confidence, most) for confidence, (most, _) in zip(confidences, signs, strict=True)]
        failing = [min(confidence, most) for confidence, (_, most) in zip(failing, signs, strict=True)]
    weights = [float(len(samples[n])) for n in tested]
    fitted = isotonic([fmean(samples[n]) for n in tested], weights, increasing=objective.at_most)
    keeps, fails = _least(confidences), _least(failing[::-1])[::-1]
    kept = [sum(_keeps(value, objective.bound) for value in samples[n]) if by_runs else len(samples[n]) for n in tested]
    steps = tuple(
        Step(
            n,
            len(samples[n]),
            fmean(samples[n]),
            _interval(samples[n], level),
            *of_n,
            kept=runs,
            share=_least_share(runs, len(samples[n]), level) if by_runs else None,
            more=_more(samples, n, objective, level, by_runs, reference),
        )
        for n, runs, of_n in zip(tested, kept, zip(fitted, confidences, keeps, fails, strict=True), strict=True)
    )
    narrow = (1 + level) / 2
    first_failing = _first_failing(steps, narrow)
    return Capacity(
        objective,
        level,
        steps,
        bound,
        reference,
        _last_kept(steps, level),
        _first_failing(steps, level),
        _last_kept(steps, narrow) or 0,
        None if first_failing is None else first_failing - 1,
        _knee(tested, [(value - bound) * (1 if objective.at_most else -1) for value in fitted]),
    )


def _check(samples: Mapping[int, Sequence[float]], objective: Objective) -> None:
    if not samples:
        raise ValueError("no runs")
    for n, values in samples.items():
        if n < 1:
            raise ValueError(f"N = {n}, expected at least 1")
        if len(values) < LEAST:
            raise ValueError(f"{len(values)} run at N = {n}: one run does not show how runs vary; make at least {LEAST}")
    if objective.relative and 1 not in samples:
        raise ValueError("no runs at N = 1, to which the objective refers")
    if objective.relative and (single := fmean(samples[1])) <= 0:
        raise ValueError(f"the mean at N = 1 is {single:g}: give a bound in the metric's unit, not a share")


def _reference(samples: Mapping[int, Sequence[float]], objective: Objective, level: float) -> int:
    """Return the N whose mean a share is of: 1, unless another N is shown to have a better mean; then the best of those."""
    sign = -1 if objective.at_most else 1
    alpha = (1 - level) / max(1, len(samples) - 1)
    single, error = samples[1], _squared_error(samples[1])
    better = []
    for n, values in samples.items():
        gain, both = sign * (fmean(values) - fmean(single)), error + _squared_error(values)
        if n == 1 or gain <= ROUNDING * abs(fmean(single)):
            continue
        df = welch_df(error, len(single), _squared_error(values), len(values)) if both > 0 else 0.0
        # Of equal values nothing but their number is known.
        p_value = float(stdtr(df, -gain / math.sqrt(both))) if both > 0 else 0.5 ** min(len(values), len(single))
        if p_value <= alpha:
            better.append(n)
    return max(better, key=lambda n: sign * fmean(samples[n]), default=1)


def _confidence(samples: Mapping[int, Sequence[float]], n: int, objective: Objective, reference: int | None) -> float:
    values = samples[n]
    if n == reference:
        # Against itself nothing is measured.
        holds = objective.bound >= 1 if objective.at_most else objective.bound <= 1
        return 1.0 if holds else 0.0
    error, df = _squared_error(values), float(len(values) - 1)
    target = objective.bound
    if reference is not None:
        single = samples[reference]
        other = objective.bound**2 * _squared_error(single)
        target = objective.bound * fmean(single)
        df = welch_df(error, len(values), other, len(single)) if error + other > 0 else df
        error += other
    room = target - fmean(values) if objective.at_most else fmean(values) - target
    if error == 0:
        sure = 1 - 0.5 ** len(values)
        return sure if room >= -ROUNDING * abs(target) else 1 - sure
    return float(stdtr(df, room / math.sqrt(error)))


def _is_loss(samples: Mapping[int, Sequence[float]], objective: Objective) -> bool:
    return objective.at_most and not objective.relative and min(min(values) for values in samples.values()) >= 0


def _keeps(value: float, bound: float) -> bool:
    return value <= bound + ROUNDING * abs(bound)


def _signs(values: Sequence[float], objective: Objective) -> tuple[float, float]:
    """Return how sure it is that more than half of all runs keep the objective, and that more than half do not."""
    n, kept = len(values), sum(_keeps(value, objective.bound) for value in values)
    return float(bdtr(kept - 1, n, 0.5)) if kept else 0.0, float(bdtr(n - kept - 1, n, 0.5)) if kept < n else 0.0


def _least_share(kept: int, runs: int, level: float) -> float:
    return float(betaincinv(kept, runs - kept + 1, 1 - level)) if kept else 0.0


def _squared_error(values: Sequence[float]) -> float:
    """Return the squared error of the mean; 0 if values differ by their rounding only, which says nothing of how runs
    differ."""
    return variance(values) / len(values) if varies(values) else 0.0


def _interval(values: Sequence[float], level: float) -> Bounds:
    """Return Student's interval of the mean, cut at 0 if no value is negative. For equal values it is one point, and says no
    more."""
    low, high, _ = mean_interval(values, level)
    return Bounds(max(0.0, low) if min(values) >= 0 else low, high, level)


def _more(
    samples: Mapping[int, Sequence[float]], n: int, objective: Objective, level: float, by_runs: bool, reference: int | None
) -> int | None:
    """Return how many more runs at this N would bring the confidence to the level either way. It assumes the means and spreads
    seen, and the share of runs that keep the objective."""
    measured = len(samples[n])
    if n == reference:
        return None
    by_means, by_signs = _more_for_means(samples, n, objective, level, reference), 0
    if by_runs:
        kept = sum(_keeps(value, objective.bound) for value in samples[n])
        room = objective.bound - fmean(samples[n])
        # Runs on the side where the mean is; where most are on the other, no number of them will settle it.
        share = (kept if room >= 0 else measured - kept) / measured
        runs = np.arange(measured, MOST + 1)
        sure = bdtr(np.floor(share * runs) - 1, runs, 0.5) >= level
        if not sure.any():
            return None
        by_signs = int(np.argmax(sure))
    return None if by_means is None else max(by_means, by_signs) or None


def _more_for_means(
    samples: Mapping[int, Sequence[float]], n: int, objective: Objective, level: float, reference: int | None
) -> int | None:
    """Return more runs as ``_more``, by means alone: 0 if none are needed, None if MOST would not do."""
    measured, now = len(samples[n]), _confidence(samples, n, objective, reference)
    if max(now, 1 - now) >= level:
        return 0
    error, room = _squared_error(samples[n]) * measured, objective.bound - fmean(samples[n])
    if reference is not None:
        single = samples[reference]
        error += objective.bound**2 * _squared_error(single) * len(single)
        room = objective.bound * fmean(single) - fmean(samples[n])
    if error == 0:
        return fewest_of_a_loss(level) - measured
    # The more runs, the surer.
    more = bisect_left(
        range(measured + 1, MOST + 1), level, key=lambda n: float(stdtr(n - 1, abs(room) * math.sqrt(n / error)))
    )
    return more + 1 if measured + 1 + more <= MOST else None


def _least(values: Sequence[float]) -> list[float]:
    least: list[float] = []
    for value in values:
        least.append(min(value, least[-1]) if least else value)
    return least


def _last_kept(steps: Sequence[Step], level: float) -> int | None:
    return max((step.n for step in steps if step.keeps >= level), default=None)


def _first_failing(steps: Sequence[Step], level: float) -> int | None:
    return min((step.n for step in steps if step.fails >= level), default=None)


def _knee(tested: Sequence[int], beyond: Sequence[float]) -> float | None:
    """Return where the excess over the bound passes 0."""
    for (n, excess), (more, next_excess) in pairwise(zip(tested, beyond, strict=True)):
        if excess <= 0 < next_excess:
            return n + (more - n) * -excess / (next_excess - excess)
    return None


def sentence(capacity: Capacity, noun: str, many: str, unit: str = "") -> str:
    """Describe a capacity, such as "5 guests: more than 99.9 % sure; 6: no, ..."; ``noun`` and ``many`` name what N counts."""
    unit = f" {unit}" if unit not in ("", "1") else ""
    by_n = {step.n: step for step in capacity.steps}
    parts = []
    if capacity.keeps is None:
        first = capacity.steps[0]
        parts.append(
            f"not even {_counted(first.n, noun, many)}"
            + ("" if first.n == capacity.fails else f": {_undecided(first, capacity.level)}")
        )
    else:
        least = "at least " if capacity.fails is None and capacity.keeps == capacity.steps[-1].n else ""
        kept = by_n[capacity.keeps]
        itself = kept.n == capacity.reference
        how = "by definition" if itself else f"{_share(kept.keeps, capacity.level)} sure"
        sure = f"{least}{_counted(kept.n, noun, many)}: {how}"
        if kept.share is not None:
            sure += f" of most runs ({kept.kept} of {kept.runs} kept it; up to {100 * (1 - kept.share):.0f} % of all may not)"
        parts.append(sure)
        if least:
            parts.append("larger N were not tested")
    above = [step for step in capacity.steps if step.n > (capacity.keeps or 0)]
    open_ones = [step for step in above if capacity.fails is None or step.n < capacity.fails]
    if capacity.keeps is not None:
        parts += [f"{step.n}: {_undecided(step, capacity.level)}" for step in open_ones[:MOST_OPEN]]
        more = [step.n for step in open_ones[MOST_OPEN:]]
        if more:
            parts.append(f"nor is {more[0]}" if len(more) == 1 else f"nor are {more[0]} to {more[-1]}")
    if capacity.fails is not None:
        failing = by_n[capacity.fails]
        bounds = f"{_digits(failing.interval.low)} to {_digits(failing.interval.high)}"
        inside = f"the mean there is {_digits(failing.mean)}, {bounds}{unit}"
        of_runs = " of most runs" if failing.share is not None else ""
        parts.append(f"{capacity.fails}: no, {_share(failing.fails, capacity.level)} sure{of_runs} ({inside})")
        if not open_ones and capacity.keeps is not None and capacity.fails > capacity.keeps + 1:
            parts.append("N between them were not tested")
    if capacity.reference not in (None, 1):
        best, alone = by_n[capacity.reference], by_n[1]
        times = f", {_digits(best.mean / alone.mean)} times that at 1" if alone.mean > 0 else ""
        parts.append(f"not monotone: the share is of the best mean, which is at {_counted(best.n, noun, many)}{times}")
    return "; ".join(parts)


def _digits(value: float) -> str:
    """Format with three digits."""
    return f"{float(f'{value:.3g}'):,g}"


def _counted(n: int, noun: str, many: str) -> str:
    return f"{n} {noun if n == 1 else many}"


def _undecided(step: Step, level: float) -> str:
    more = f"; about {step.more} more run{'s' if step.more > 1 else ''} would settle it" if step.more else ""
    return f"not shown ({_share(step.keeps, level)} sure{more})"


def _share(value: float, level: float) -> str:
    """Round down to a tenth of a per cent, or to as many digits as distinguish it from the level."""
    # log10 of 1 - 0.999 is a rounding off -3.
    digits = max(1, math.ceil(round(-math.log10(1 - level), 6)) - 2)
    steps = 10 ** (digits + 2)
    if value > (steps - 1) / steps:
        return f"more than {100 - 100 / steps:.{digits}f} %"
    return f"less than {100 / steps:.{digits}f} %" if value < 1 / steps else f"{math.floor(value * steps) * 100 / steps:g} %"


def isotonic(values: Sequence[float], weights: Sequence[float] | None = None, *, increasing: bool = True) -> list[float]:
    """Return as many fitted values. Weights, by default 1, must be above 0."""
    from scipy.optimize import isotonic_regression

    fitted: list[float] = isotonic_regression(values, weights=weights, increasing=increasing).x.tolist()
    return fitted
