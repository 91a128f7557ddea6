"""The step that rounded values come in, and how far rounding can move their mean.

A mean of values that are rounded to whole steps h is off by at most h/2.  Where the values themselves vary, rounding averages
out: for normal noise with standard deviation sigma, the mean is off by at most (h/pi) sum exp(-2 pi^2 k^2 sigma^2/h^2)/k over k
= 1, 2, ... (Widrow and Kollar 2008, Quantization Noise, ch. 4 and app. B), which is below (h/pi) ln(1/(1 - q)) with q the
exponential at k = 1.  A tool that cuts digits off moves every mean by half a step more. If both samples come from one tool,
both means move alike: their ratio moves away from 1, which makes no false equivalence.

A step is the largest power of ten that all values are whole multiples of, or a lattice: the greatest common step of their
differences, such as a clock's tick of 4 ms.  The more values fall on a lattice, the less likely it is chance.

Do values end at a limit, such as a time-out?

If several values of a sample are the largest of two samples, and the others differ far more than they are rounded, the largest
is a limit: larger values were recorded as the limit.  Means then say nothing about larger values.  By chance the t largest of N
values share one of the R steps between the smallest and the largest with a probability of about C(N-1, t-1) / R^(t-1), if all
steps are as likely. Times are, if anything, sparser at their upper end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from twinbed.statistics.moments import variance

DIGITS = 9
"""A step finer than this many digits of the largest value moves nothing, and is not searched."""
NOISE = 1e-11
"""Share of a value by which arithmetic may have moved it."""
SMALLEST = 1e-200
"""Nothing is printed in steps of less."""
ROUND_FROM = 4
"""The fewest different values that show that tens or thousands are a step, rather than chance."""
BY_CHANCE = 0.01
"""A lattice is believed if finer values fall on it by chance at most this often."""
BLURRED = 4
"""So many places of finer values around each of a lattice's count as on it, if its own values were rounded once more."""
SURE = 0.95
"""Confidence that the values vary at least as much as assumed."""

Values = Sequence[float] | NDArray[np.float64]


def step(values: Values) -> float:
    """Return the step that the values of one group come in, such as a clock's ticks, quarters, or means of three whole numbers.

    A power of ten above 1 is believed only of ROUND_FROM different values.  0 where there is no step, or all values are 0.

    >>> step([0.001, 0.25]), step([3.0, 7.0]), step([100.0]), step([1 / 3, 0.5])
    (0.001, 1.0, 1.0, 0.0)
    >>> step([12.0, 16.0, 12.0, 16.0, 20.0, 12.0]), step([1.25, 1.5, 1.25, 2.0]), round(step([3.0, 10 / 3, 11 / 3, 3.0]), 6)
    (4.0, 0.25, 0.333333)
    """
    fine = printed_step(values)
    return max(fine, lattice(distinct(values), evidence([values]), fine))


def coarser(values: Values, own: float, fine: float) -> float:
    """Return ``own``, the step of some values that come in steps of ``fine`` elsewhere (0: in none), or else ``fine``. ``own``
    must be larger, and finer values must not fall on it by chance."""
    finest = fine or _finest(values)
    return own if own > finest and (finest / own) ** len(set(values)) <= BY_CHANCE else fine


def evidence(groups: Sequence[Values]) -> int:
    """Return how many differences inside groups are evidence of a lattice: all but one, and none if nothing varies."""
    return max(0, sum(len(group) - 1 for group in groups if min(group) != max(group)) - 1)


def distinct(values: Values) -> list[float]:
    """Return the different values in ascending order. Values that arithmetic alone may have separated are one."""
    ordered: list[float] = np.unique(values).tolist() if len(values) > 100 else sorted(set(values))
    if not ordered:
        return ordered
    apart = NOISE * max(abs(ordered[0]), abs(ordered[-1]))
    return [ordered[0], *(upper for lower, upper in pairwise(ordered) if upper - lower > apart)]


def lattice(different: Sequence[float], evidence: int, fine: float) -> float:
    """Return the greatest common step of the differences of ascending values, which are whole multiples of ``fine`` (0: of
    nothing).

    0 if it is not more than ``fine``, or if chance would do.  If values were rounded once more after they had come in steps
    (15.625 ms as 16, 31, 47), each may be off by a unit.

    >>> round(lattice([3.0, 3.33, 3.67, 4.0], 6, 0.01), 6)
    0.333333
    """
    finest = fine or _finest(different)
    if not evidence or len(different) < 2 or finest < SMALLEST:
        return 0.0
    least = BY_CHANCE ** (-1 / evidence)
    units = [(value - different[0]) / finest for value in different]
    units = [float(round(unit)) for unit in units] if fine else units
    exact = _common(units, 0.5, least, 0.5)
    return finest * (exact or (_common(units, 2.0, BLURRED * least, 1.5) if fine else 0.0))


def _common(units: Sequence[float], tolerance: float, least: float, off: float) -> float:
    """Return the unit that all ascending units, the first of which is 0, are multiples of, but for ``off``; 0 if below
    ``least``."""
    common = 0.0
    for lower, upper in pairwise(units):
        other = upper - lower
        while other > tolerance:  # Euclid's algorithm
            common, other = other, abs(common - other * round(common / other))
        if 0 < common < least:
            return 0.0
    for unit in units:  # the farther a unit, the better it tells the step
        if common and round(unit / common):
            common = unit / round(unit / common)
    if not common or any(abs(unit - common * round(unit / common)) > off for unit in units):
        return 0.0
    return common


def _finest(values: Values) -> float:
    return max(map(abs, values), default=0.0) * 10.0**-DIGITS


def printed_step(values: Values) -> float:
    """Return the largest power of ten that all values are whole multiples of; 0 where there is none."""
    absolute = np.unique(np.abs(values)).tolist() if len(values) > 100 else sorted({abs(value) for value in values})
    different = absolute[1:] if absolute and not absolute[0] else absolute
    if not different or different[-1] < SMALLEST:
        return 0.0
    most = math.floor(math.log10(different[-1]))
    exponents = range(most if len(different) >= ROUND_FROM else min(most, 0), most - DIGITS, -1)
    if not exponents or not _multiples(different, exponents[-1]):
        return 0.0
    exponent = next(power for power in exponents if _multiples(different, power))
    return 10.0**exponent if exponent >= 0 else 1 / 10.0**-exponent


def _multiples(values: Sequence[float], exponent: int) -> bool:
    # Negative powers of ten are not exact; dividing by positive ones is.
    power = 10.0 ** abs(exponent)
    steps = (value / power if exponent >= 0 else value * power for value in values)
    return all(abs(scaled - round(scaled)) <= NOISE * scaled for scaled in steps)


def bias(values: Sequence[float], step: float) -> float:
    """Return how far rounding to whole steps can have moved the mean of at least two values, in their unit."""
    if not step:
        return 0.0
    n = len(values)
    least = max(0.0, variance(values) - step**2 / 12) * (n - 1) / float(chdtri(n - 1, 1 - SURE))
    q = math.exp(-2 * math.pi**2 * least / step**2)
    return step / 2 if q > 0.99 else min(step / 2, -step / math.pi * math.log1p(-q))


LIMIT_BY_CHANCE = 0.001
"""The largest values are a limit only if chance makes them the same less often than this."""

OFF_STEP = 0.01
"""Values in steps may be off them by this share of a step."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A value at which others end, and how many end there, here and on the reference."""

    value: float
    here: int
    reference: int


def limit(values: Sequence[float], reference: Sequence[float], steps: tuple[float, float]) -> Limit | None:
    """Return the limit at which values of two samples end; None where none shows. ``steps``: what they are rounded to, or 0.

    >>> limit([10.0, 7.2134, 10.0], [10.0, 10.0, 5.1352], (0.0001, 0.0001))
    Limit(value=10.0, here=2, reference=2)
    >>> limit([10.0, 9.0, 10.0], [10.0, 10.0, 8.0], (1.0, 1.0))
    """
    samples = values, reference
    most = max(map(max, samples))
    if not any(_ends(sample, most, step) for sample, step in zip(samples, steps, strict=True)):
        return None
    return Limit(most, *(sum(value == most for value in sample) for sample in samples))


def _ends(sample: Sequence[float], most: float, step: float) -> bool:
    """Return whether several values are the largest of all, and not by chance."""
    ends = sum(value == most for value in sample)
    if ends < 2 or ends == len(sample):
        return False
    if step and any(abs(value / step - round(value / step)) > OFF_STEP for value in sample):
        step = printed_step(sample)  # one value beside a limit makes a step of its own
    places = (most - min(sample)) / max(step, abs(most) * 10.0**-DIGITS)
    return places >= 1 and math.comb(len(sample) - 1, ends - 1) * places ** (1 - ends) <= LIMIT_BY_CHANCE
