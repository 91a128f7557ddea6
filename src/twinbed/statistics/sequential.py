"""Interim analyses of a growing study: levels at which all analyses together err as often as one test.

The level is spent by Lan and DeMets's function of Pocock's type (1983, Biometrika 70:659): by information ``t``, the share of
the largest sample that has been seen, alpha ln(1 + (e - 1) t) is spent.  The part that an analysis may spend becomes the level
of its own test by the recursion of Armitage, McPherson and Rowe (1969, J. R. Stat. Soc. A 132:235) for a Brownian motion with
independent increments.  Levels are for one-sided p-values, whichever test made them: the significance-level approach to t
statistics of Jennison and Turnbull (2000, Group Sequential Methods, 11.4).  The interval that each analysis' level gives is
Jennison and Turnbull's repeated confidence interval (1989, J. R. Stat. Soc. B 51:305): all of them hold together.

The function is of Pocock's type, not of O'Brien and Fleming's.  The latter leaves the first analyses levels of 10^-6: a t test
of few values cannot reach them, and Welch's approximation cannot be trusted there.  Pocock's leaves every analysis about 1 %.

``overall_level`` turns an analysis' p-value into the smallest level of the whole procedure that would have rejected at this
analysis (Liu and Anderson 2008, J. Am. Stat. Assoc. 103:1625, here of the last analysis alone, which can only be larger).  It
stands in for a p-value everywhere, in Holm's correction too (Maurer and Bretz 2013, Stat. Biopharm. Res. 5:311).

Limits: the recursion is for normal values of known variance.  With few values a t statistic varies more than a normal one, by
(n - 3)/(n - 1) for the n - 1 degrees of freedom that Welch's t has at least.  Successive analyses are then less alike than
their numbers of values suggest.  ``information`` therefore counts n (n - 3)/(n - 1) for n values.  This keeps the size of the
whole procedure at its level from four values on.  Simulation shows that (docs/coverage.md); it is not proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

_REACH = 8.0
"""Standard deviations below the mean where integration begins; the mass below is under 10^-15."""
_TIGHTEST = 1e-12
"""Overall levels below this are given as this: an analysis' level is then beyond what the recursion can resolve."""
_LOOSEST = 0.9
"""Overall levels above this are given as 1: they decide nothing."""


FEWEST = 4
"""Values of each testbed at the first analysis: with three, a t statistic has no information as counted here."""


def information(values: int, most: int) -> float:
    """Return the share of the information of ``most`` values that ``values`` of each testbed hold, for a t statistic."""
    return values * (values - 3) * (most - 1) / ((values - 1) * most * (most - 3))


def spent(alpha: float, information: float) -> float:
    """Return how much of ``alpha`` may be spent by an information of 0 to 1."""
    return alpha * math.log1p((math.e - 1) * min(information, 1.0))


def interim_levels(alpha: float, information: Sequence[float]) -> tuple[float, ...]:
    """Return the level of each analysis' own one-sided test, for analyses at increasing shares of the information."""
    times = tuple(information)
    if not times or any(later <= earlier for earlier, later in zip((0.0, *times), times, strict=False)):
        raise ValueError(f"information must increase from above 0, not {times}")
    return _levels(alpha, times)


@lru_cache(maxsize=4096)
def _levels(alpha: float, times: tuple[float, ...]) -> tuple[float, ...]:
    levels = []
    points = density = weights = np.empty(0)
    before = 0.0
    for at, time in enumerate(times):
        step = time - before
        allowed = spent(alpha, time) - spent(alpha, before)
        if at == 0:
            bound = -float(ndtri(allowed)) * math.sqrt(time)
        else:
            bound = _crossed_by(allowed, points, density * weights, math.sqrt(step))
        levels.append(float(ndtr(-bound / math.sqrt(time))))
        if at + 1 < len(times):
            fresh, fresh_weights = _grid(-_REACH * math.sqrt(time), bound, time, min(step, times[at + 1] - time))
            if at == 0:
                grown = np.exp(-(fresh**2) / (2 * time)) / math.sqrt(2 * math.pi * time)
            else:
                kernel = np.exp(-((fresh[:, None] - points) ** 2) / (2 * step))
                grown = kernel @ (density * weights) / math.sqrt(2 * math.pi * step)
            points, weights, density = fresh, fresh_weights, grown
        before = time
    return tuple(levels)


def _crossed_by(allowed: float, points: Floats, mass: Floats, deviation: float) -> float:
    """Return the bound that the next increment takes the given mass across with probability ``allowed``; by bisection."""
    low, high = float(points[0]), float(points[-1]) + 40 * deviation
    for _ in range(80):
        middle = (low + high) / 2
        if float(mass @ ndtr((points - middle) / deviation)) > allowed:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _grid(low: float, high: float, time: float, step: float) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre points and weights, dense enough for kernels as narrow as the shorter of the two neighbouring
    steps."""
    count = min(1000, 40 + math.ceil(25 * math.sqrt(time / step)))
    nodes, weights = _legendre(count)
    half = (high - low) / 2
    return low + half * (nodes + 1), half * weights


@lru_cache(maxsize=64)
def _legendre(count: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def overall_level(p_value: float, information: Sequence[float]) -> float:
    """Return the smallest level of the whole procedure at which the last of these analyses rejects on this one-sided
    p-value."""
    times = tuple(information)
    deviates, overall = _inverse(times)
    if p_value <= 0:
        return _TIGHTEST
    deviate = float(ndtri(min(p_value, 1.0)))
    if deviate <= deviates[0]:
        return _TIGHTEST
    if deviate >= deviates[-1]:
        return 1.0
    return max(p_value, float(ndtr(np.interp(deviate, deviates, overall))))


@lru_cache(maxsize=256)
def _inverse(times: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return normal deviates of the last analysis' level, and of the overall levels that give them."""
    overall = np.linspace(float(ndtri(_TIGHTEST)), float(ndtri(_LOOSEST)), 150)
    return np.array([ndtri(interim_levels(float(ndtr(quantile)), times)[-1]) for quantile in overall]), overall
