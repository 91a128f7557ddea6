"""The ratio of one testbed's geometric mean to the reference's, with confidence intervals, and tests at a margin.

The margin m gives the region from 1/(1+m) to 1+m, which is symmetric on the scale of ratios: the choice of the reference among
two testbeds changes no verdict. Two questions are asked about the same two samples, each with its own error rate; if both
answers are no, the data do not decide:

* Are they equivalent?  Two one-sided tests at alpha each (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657); the same as
  asking whether the interval at 1 - 2 alpha lies inside the region.
* Are they different, by more than the margin?  One two-sided test at alpha; the same as asking whether the interval at
  1 - alpha lies outside the region on one side.

Positive values are compared on the scale of logarithms by Welch's t (1947, Biometrika 34:28): multiplicative noise, a ratio of
geometric means, an interval that is never unbounded.  Where a value is 0 there is no logarithm. The ratio of arithmetic means
is then compared with the region by the tests of mean(x) - theta mean(y) (Fieller 1954, J. R. Stat. Soc. B 16:175; for
equivalence Hauschke et al. 1999, Stat. Med. 18:93) with Satterthwaite's degrees of freedom, since variances differ.

Samples whose values belong together in pairs, because a block of the design or a session made one of each, are compared by the
differences within pairs: a shift of a whole pair cancels.  Student's t of the n - 1 degrees of freedom of n pairs takes Welch's
place, and Fieller's test has the covariance.  With positive correlation within pairs the tests for independent samples keep
their size but lose power. Without correlation they are more powerful, since they have more degrees of freedom.  The design
decides between the two before there are values (Montgomery 2017, Design and Analysis of Experiments, 2.5).

Few or coarse values are not taken for proof.  Values rounded to steps may be off by what rounding hides
(``statistics.resolution``): this widens each interval at both ends and weakens each test.  Rare events are at most as sure as
Poisson's law allows (``statistics.counts``): the weaker of its test and the test of means counts.  Without an event on either
side there is nothing to compare, and no verdict.

Function ``summary_ratio_test`` is for two means known only by summaries: mean, standard error, number of values.  They allow
only the tests of mean(x) - theta mean(y) (Fieller 1954, J. R. Stat. Soc. B 16:175; for equivalence Hauschke et al. 1999, Stat.
Med. 18:93) with Satterthwaite's degrees of freedom (1946, Biometrics Bull. 2:110) at the observed ratio. Means are assumed to
be normal.

Function ``pooled_ratio`` gives the geometric mean of many cells' ratios.  Each cell weighs the same, as in the geometric mean
that benchstat and SPEC print, so that the number is about these cells and no population of them. Cells whose values are paired
by the same blocks or sessions are averaged within each: Student's t of the mean differences of blocks, which holds whatever the
cells of a block share.  Otherwise the variances of the cells' differences add up, with Satterthwaite's degrees of freedom.

Agreement is Cochran's Q of the cells' logarithms (1954, Biometrics 10:101), with Welch's correction for estimated variances
(1951, Biometrika 38:330), which is Welch's analysis of variance of the cells' ratios.  It takes cells as independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from scipy.special import fdtrc, stdtr, stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.counts import CountTest, Tally, are_rare, count_test
from twinbed.statistics.moments import covariance, factor, standard_error, variance, varies, welch_df
from twinbed.statistics.resolution import bias
from twinbed.statistics.sample import Sample


@dataclass(frozen=True, slots=True)
class RatioTest:
    """The comparison of two samples' means by their ratio. ``ratio`` is None if the reference is 0 throughout."""

    ratio: float | None
    interval: Bounds | None
    """At 1 - 2 alpha; None where it is unbounded."""
    wide: Bounds | None
    """At 1 - alpha; None where it is unbounded."""
    p_equivalent: float
    """The larger of the two one-sided p-values; equivalent where it is at most alpha."""
    p_different: float
    """Two-sided p-value of the ratio being outside the region; different where it is at most alpha."""
    method: str
    """The method for the means: ``log``, ``fieller``, ``exact``, ``counts``, or ``unseen`` if both samples are 0 throughout."""


def ratio_test(
    values: Sequence[float],
    reference: Sequence[float],
    margin: float,
    alpha: float,
    *,
    steps: tuple[float, float] = (0.0, 0.0),
    cut: bool = False,
    counts: tuple[Tally, Tally] | None = None,
    paired: bool = False,
) -> RatioTest | None:
    """Compare two samples of at least two values each; None if a value is negative: no ratio then means anything.

    ``steps`` are the rounding steps of both samples, in their unit. With ``cut`` one side's values may have been cut off, not
    rounded. The ``counts`` are the events behind counts or rates. With ``paired`` the values of both samples belong together
    one by one, in the order given.
    """
    if paired and len(values) != len(reference):
        raise ValueError(f"{len(values)} values cannot be paired with {len(reference)}")
    values, reference = Sample.of(values), Sample.of(reference)
    least = min(values.least, reference.least)
    if least < 0:
        return None
    if not any(values) and not any(reference):
        return RatioTest(None, None, None, p_equivalent=1.0, p_different=1.0, method="unseen")
    hidden = bias(values, steps[0]) + cut * max(steps) / 2, bias(reference, steps[1])
    if not varies(values) and not varies(reference):
        test = _exact(values[0], reference[0], hidden, margin, alpha)
    elif least > 0:
        test = _log(values, reference, hidden, margin, alpha, paired)
    else:
        test = _fieller(values, reference, hidden, margin, alpha, paired)
    if counts is None or not are_rare(counts[0].events, counts[1].events):
        return test
    return _weaker(test, count_test(*counts, margin, alpha))


def _weaker(test: RatioTest, count: CountTest) -> RatioTest:
    """Combine both tests: the wider intervals and the larger p-values."""

    def union(own: Bounds | None, other: Bounds) -> Bounds | None:
        if own is None or math.isinf(other.high):
            return None
        return Bounds(min(own.low, other.low), max(own.high, other.high), own.level)

    return replace(
        test,
        interval=union(test.interval, count.interval),
        wide=union(test.wide, count.wide),
        p_equivalent=max(test.p_equivalent, count.p_equivalent),
        p_different=max(test.p_different, count.p_different),
        method="counts",
    )


def _exact(value: float, reference: float, hidden: tuple[float, float], margin: float, alpha: float) -> RatioTest:
    """Compare samples that do not vary: the ratio is exact, but for what rounding hides."""
    least, most = max(0.0, value - hidden[0]), value + hidden[0]
    least_reference, most_reference = max(0.0, reference - hidden[1]), reference + hidden[1]
    inside = most <= (1 + margin) * least_reference and least * (1 + margin) >= most_reference
    outside = least > (1 + margin) * most_reference or most * (1 + margin) < least_reference
    low = least / most_reference if most_reference else math.inf
    high = most / least_reference if least_reference else math.inf
    if value == reference and not any(hidden):
        low = high = 1.0
    bounded = math.isfinite(high)
    return RatioTest(
        ratio=1.0 if value == reference else value / reference if reference else None,
        interval=Bounds(low, high, 1 - 2 * alpha) if bounded else None,
        wide=Bounds(low, high, 1 - alpha) if bounded else None,
        p_equivalent=0.0 if inside else 1.0,
        p_different=0.0 if outside else 1.0,
        method="exact",
    )


def _log(
    values: Sample,
    reference: Sample,
    hidden: tuple[float, float],
    margin: float,
    alpha: float,
    paired: bool,
) -> RatioTest:
    x, y = values.logarithms, reference.logarithms
    difference, edge = x.average - y.average, math.log1p(margin)
    error, df = standard_error(x, y, paired)
    if not error:
        return _exact(math.exp(x.average), math.exp(y.average), hidden, margin, alpha)
    off = hidden[0] / math.exp(x.average), hidden[1] / math.exp(y.average)
    if max(off) >= 1:  # a mean may be 0
        return _fieller(values, reference, hidden, margin, alpha, paired)
    low = difference + math.log1p(-off[0]) - math.log1p(off[1])
    high = difference + math.log1p(off[0]) - math.log1p(-off[1])

    def interval(tail: float) -> Bounds:
        half = float(stdtrit(df, 1 - tail)) * error
        return Bounds(factor(low - half), factor(high + half), 1 - 2 * tail)

    p_equivalent, _ = p_values((low + edge) / error, (high - edge) / error, df)
    _, p_different = p_values((high + edge) / error, (low - edge) / error, df)
    return RatioTest(math.exp(difference), interval(alpha), interval(alpha / 2), p_equivalent, p_different, "log")


def _fieller(
    values: Sequence[float],
    reference: Sequence[float],
    hidden: tuple[float, float],
    margin: float,
    alpha: float,
    paired: bool,
) -> RatioTest:
    x, y = Sample.of(values).average, Sample.of(reference).average
    a, b = variance(values) / len(values), variance(reference) / len(reference)
    c = covariance(values, reference) / len(values) if paired else 0.0
    # One number of degrees of freedom, at the ratio found, so that tests and interval say the same.
    theta = x / y if y else 1.0
    df = float(min(len(values), len(reference)) - 1)
    if not paired and (a or theta * b):
        df = welch_df(a, len(values), theta**2 * b, len(reference))

    def statistic(theta: float, way: int) -> float:
        """Return t with the means moved as far as rounding can have moved them; ``way`` is -1 for the least ratio, 1 for the
        largest."""
        difference = x - theta * y + way * (hidden[0] + theta * hidden[1])
        square = a - 2 * theta * c + theta**2 * b
        if square <= 1e-24 * (a + theta**2 * b):  # pairs that differ by exactly this ratio
            return math.copysign(math.inf, difference) if difference else 0.0
        return difference / math.sqrt(square)

    p_equivalent, _ = p_values(statistic(1 / (1 + margin), -1), statistic(1 + margin, 1), df)
    _, p_different = p_values(statistic(1 / (1 + margin), 1), statistic(1 + margin, -1), df)

    def interval(tail: float) -> Bounds | None:
        least = fieller_interval(max(0.0, x - hidden[0]), y + hidden[1], a, b, df, tail, c)
        most = fieller_interval(x + hidden[0], max(0.0, y - hidden[1]), a, b, df, tail, c)
        return None if least is None or most is None else Bounds(least.low, most.high, least.level)

    return RatioTest(
        ratio=x / y if y else None,
        interval=interval(alpha),
        wide=interval(alpha / 2),
        p_equivalent=p_equivalent,
        p_different=p_different,
        method="fieller",
    )


def fieller_interval(x: float, y: float, a: float, b: float, df: float, tail: float, c: float = 0.0) -> Bounds | None:
    """Return Fieller's interval of x/y for means with squared standard errors ``a`` and ``b`` and covariance ``c``, ``tail`` a
    side. None where the reference's mean is not shown to differ from 0, which makes the set unbounded."""
    t2 = float(stdtrit(df, 1 - tail)) ** 2
    square = y**2 - t2 * b
    if square <= 0:
        return None
    middle = x * y - t2 * c
    root = math.sqrt(max(0.0, middle**2 - square * (x**2 - t2 * a)))
    return Bounds((middle - root) / square, (middle + root) / square, 1 - 2 * tail)


def p_values(above_low: float, above_high: float, df: float) -> tuple[float, float]:
    """Return the p-values of equivalence and of difference, from the t statistics at the region's lower and upper edge."""
    p_above_low, p_below_high = float(stdtr(df, -above_low)), float(stdtr(df, above_high))
    p_above_high, p_below_low = float(stdtr(df, -above_high)), float(stdtr(df, above_low))
    return max(p_above_low, p_below_high), min(1.0, 2 * min(p_above_high, p_below_low))


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean of ``n`` values and its standard error, s / sqrt(n)."""

    mean: float
    error: float
    n: int


@dataclass(frozen=True, slots=True)
class SummaryTest:
    """``low`` and ``high`` at 1 - 2 alpha, None where the reference is not shown to differ from 0."""

    ratio: float
    low: float | None
    high: float | None
    p_equivalent: float
    """The larger of the two one-sided p-values; equivalent where it is at most alpha."""
    p_different: float
    """The two-sided p-value for a ratio outside of 1/(1+margin) to 1+margin."""


def summary_ratio_test(own: Summary, reference: Summary, margin: float, alpha: float) -> SummaryTest:
    """Compare two means of at least two values each, the reference's above 0. Raises ValueError for others."""
    if min(own.n, reference.n) < 2 or reference.mean <= 0:
        raise ValueError("needs two values each, and a reference above 0")
    ratio = own.mean / reference.mean
    low_edge, high_edge = 1 / (1 + margin), 1 + margin
    a, b = own.error**2, reference.error**2
    if a == b == 0:
        inside = low_edge <= ratio <= high_edge
        return SummaryTest(ratio, ratio, ratio, 0.0 if inside else 1.0, 1.0 if inside else 0.0)
    spread = a + ratio**2 * b
    df = welch_df(a, own.n, ratio**2 * b, reference.n) if spread else float(min(own.n, reference.n) - 1)

    def t(theta: float) -> float:
        return (own.mean - theta * reference.mean) / math.sqrt(a + theta**2 * b)

    p_equivalent, p_different = p_values(t(low_edge), t(high_edge), df)
    interval = fieller_interval(own.mean, reference.mean, a, b, df, alpha)
    return SummaryTest(ratio, interval and interval.low, interval and interval.high, p_equivalent, p_different)


@dataclass(frozen=True, slots=True)
class Cell:
    """The logarithms of one cell's positive values, in the order of pairs where it has them; at least two of each."""

    own: Sequence[float]
    reference: Sequence[float]


@dataclass(frozen=True, slots=True)
class PooledRatio:
    ratio: float
    interval: Bounds
    p_agree: float | None
    """The p-value that the true ratio is the same in all cells; None for one cell, or if some cell does not vary."""


def pooled_ratio(cells: Sequence[Cell], level: float, *, paired: bool) -> PooledRatio | None:
    """Pool the cells' ratios; None without cells, or if nothing varies. ``paired``: all cells have the same pairs, in the same
    order."""
    if not cells:
        return None
    differences = [Sample.of(cell.own).average - Sample.of(cell.reference).average for cell in cells]
    of_cells = [standard_error(cell.own, cell.reference, paired) for cell in cells]
    if paired:
        within = [[x - y for x, y in zip(cell.own, cell.reference, strict=True)] for cell in cells]
        blocks = [fmean(of_block) for of_block in zip(*within, strict=True)]
        error, df = math.sqrt(variance(blocks) / len(blocks)), len(blocks) - 1.0
    else:
        squares = [error**2 for error, _ in of_cells]
        error = math.sqrt(sum(squares)) / len(cells)
        df = (
            sum(squares) ** 2 / sum(square**2 / own for square, (_, own) in zip(squares, of_cells, strict=True))
            if error
            else 1.0
        )
    if not error:
        return None
    middle, half = fmean(differences), float(stdtrit(df, (1 + level) / 2)) * error
    interval = Bounds(math.exp(middle - half), math.exp(middle + half), level)
    return PooledRatio(math.exp(middle), interval, _agree(differences, of_cells))


def _agree(differences: Sequence[float], errors: Sequence[tuple[float, float]]) -> float | None:
    k = len(differences)
    if k < 2 or not all(error for error, _ in errors):
        return None
    weights = [1 / error**2 for error, _ in errors]
    total = sum(weights)
    mean = sum(weight * difference for weight, difference in zip(weights, differences, strict=True)) / total
    q = sum(weight * (difference - mean) ** 2 for weight, difference in zip(weights, differences, strict=True))
    off = sum((1 - weight / total) ** 2 / df for weight, (_, df) in zip(weights, errors, strict=True))
    statistic = q / (k - 1) / (1 + 2 * (k - 2) * off / (k**2 - 1))
    return float(fdtrc(k - 1, (k**2 - 1) / (3 * off), statistic))
