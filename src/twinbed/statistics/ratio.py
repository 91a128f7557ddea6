"""The ratio of one testbed's mean to the reference's, with intervals, and whether it is within a margin.

The margin m gives the region from 1/(1+m) to 1+m, which is symmetric on the scale of ratios: the choice of the reference among
two testbeds changes no verdict. There are three questions about the same two samples, each with its own error rate:

* Are they equivalent?  Two one-sided tests at alpha each (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15:657); the same as
  asking whether the interval at 1 - 2 alpha lies inside the region.
* Are they different, by more than the margin?  One two-sided test at alpha; the same as asking whether the interval at
  1 - alpha lies outside the region on one side.
* Neither: the data do not decide.

Positive values are compared on the scale of logarithms by Welch's t (1947, Biometrika 34:28): multiplicative noise, a ratio of
geometric means, an interval that is never unbounded.  Where a value is 0 there is no logarithm. The ratio of arithmetic means
is then compared with the region by the tests of mean(x) - theta mean(y) (Fieller 1954, J. R. Stat. Soc. B 16:175; for
equivalence Hauschke et al. 1999, Stat. Med. 18:93) with Satterthwaite's degrees of freedom, since variances differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.special import stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import variance, varies, welch_df
from twinbed.statistics.region import p_values

MOST_REPLICATES = 1000
"""More than this is not worth proposing: the ratio lies too near the edge of the region."""


@dataclass(frozen=True, slots=True)
class RatioTest:
    """What two samples say of the ratio of their means. ``ratio`` is None where the reference is 0 throughout."""

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
    """``log``, ``fieller`` or ``exact``."""


def ratio_test(values: Sequence[float], reference: Sequence[float], margin: float, alpha: float) -> RatioTest | None:
    """Compares two samples of at least two values each; None where a value is negative, since then no ratio means anything."""
    if min(*values, *reference) < 0:
        return None
    if not varies(values) and not varies(reference):
        return _exact(values[0], reference[0], margin, alpha)
    if min(*values, *reference) > 0:
        return _log(values, reference, margin, alpha)
    return _fieller(values, reference, margin, alpha)


def _exact(value: float, reference: float, margin: float, alpha: float) -> RatioTest:
    """Neither sample varies: the ratio is what it is."""
    inside = value <= (1 + margin) * reference and value * (1 + margin) >= reference
    ratio = value / reference if reference else None
    return RatioTest(
        ratio=1.0 if value == reference else ratio,
        interval=None if ratio is None else Bounds(ratio, ratio, 1 - 2 * alpha),
        wide=None if ratio is None else Bounds(ratio, ratio, 1 - alpha),
        p_equivalent=0.0 if inside else 1.0,
        p_different=1.0 if inside else 0.0,
        method="exact",
    )


def _log(values: Sequence[float], reference: Sequence[float], margin: float, alpha: float) -> RatioTest:
    x, y = [math.log(value) for value in values], [math.log(value) for value in reference]
    a, b = variance(x) / len(x), variance(y) / len(y)
    difference, error, df = fmean(x) - fmean(y), math.sqrt(a + b), welch_df(a, len(x), b, len(y))
    edge = math.log1p(margin)

    def interval(tail: float) -> Bounds:
        half = float(stdtrit(df, 1 - tail)) * error
        return Bounds(math.exp(difference - half), math.exp(difference + half), 1 - 2 * tail)

    p_equivalent, p_different = p_values((difference + edge) / error, (difference - edge) / error, df)
    return RatioTest(math.exp(difference), interval(alpha), interval(alpha / 2), p_equivalent, p_different, "log")


def _fieller(values: Sequence[float], reference: Sequence[float], margin: float, alpha: float) -> RatioTest:
    x, y = fmean(values), fmean(reference)
    a, b = variance(values) / len(values), variance(reference) / len(reference)
    # One number of degrees of freedom, at the ratio found, so that tests and interval say the same.
    theta = x / y if y else 1.0
    df = (
        welch_df(a, len(values), theta**2 * b, len(reference))
        if a or theta * b
        else float(min(len(values), len(reference)) - 1)
    )

    def statistic(theta: float) -> float:
        error = math.sqrt(a + theta**2 * b)
        return (x - theta * y) / error

    p_equivalent, p_different = p_values(statistic(1 / (1 + margin)), statistic(1 + margin), df)
    return RatioTest(
        ratio=x / y if y else None,
        interval=fieller_interval(x, y, a, b, df, alpha),
        wide=fieller_interval(x, y, a, b, df, alpha / 2),
        p_equivalent=p_equivalent,
        p_different=p_different,
        method="fieller",
    )


def fieller_interval(x: float, y: float, a: float, b: float, df: float, tail: float) -> Bounds | None:
    """Fieller's interval of x/y for independent means with squared standard errors ``a`` and ``b``, ``tail`` on each side.

    None where the reference's mean is not shown to differ from 0, which makes the set unbounded.
    """
    t2 = float(stdtrit(df, 1 - tail)) ** 2
    square = y**2 - t2 * b
    if square <= 0:
        return None
    root = math.sqrt(max(0.0, (x * y) ** 2 - square * (x**2 - t2 * a)))
    return Bounds((x * y - root) / square, (x * y + root) / square, 1 - 2 * tail)


def replicates_needed(values: Sequence[float], reference: Sequence[float], margin: float, alpha: float) -> int | None:
    """Replicates a testbed that would make the interval at 1 - 2 alpha fit the region, were ratio and spread as now found.

    None where values are not all positive, the ratio is outside the region, or more than MOST_REPLICATES would be needed.
    It makes the expected interval fit, which an actual one then does about half of the time: a least number, not a promise.
    """
    if min(*values, *reference) <= 0:
        return None
    x, y = [math.log(value) for value in values], [math.log(value) for value in reference]
    room = math.log1p(margin) - abs(fmean(x) - fmean(y))
    if room <= 0:
        return None
    spread2 = variance(x) + variance(y)
    n = max(2, math.ceil(spread2 * float(stdtrit(1e6, 1 - alpha)) ** 2 / room**2))
    while n <= MOST_REPLICATES:
        df = welch_df(variance(x) / n, n, variance(y) / n, n) if spread2 else n - 1
        if float(stdtrit(df, 1 - alpha)) ** 2 * spread2 / n <= room**2:
            return n
        n += 1
    return None
