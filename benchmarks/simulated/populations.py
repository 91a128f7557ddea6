"""Possible distributions of the values of a cell, with their true parameters.  Values are positive or 0, around 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtri

Draw = Callable[[np.random.Generator, int, int], np.ndarray]
"""(noise, studies, n) -> an array of studies x n."""


@dataclass(frozen=True)
class Population:
    """``margin`` is such that the tests have something to decide with 5 to 30 values: about two standard deviations."""

    name: str
    about: str
    draw: Draw
    mean: float
    median: float
    upper: float
    """Its quantile 0.9."""
    stdev: float
    margin: float
    independent: bool = True
    zeros: bool = False

    @property
    def fairness(self) -> float:
        """Jain's index of many flows like these."""
        return 1 / (1 + (self.stdev / self.mean) ** 2)


def _lognormal(name: str, about: str, draw: Draw, deviation: float, margin: float, independent: bool = True) -> Population:
    mean = math.exp(deviation**2 / 2)
    stdev = mean * math.sqrt(math.expm1(deviation**2))
    return Population(name, about, draw, mean, 1.0, math.exp(float(ndtri(0.9)) * deviation), stdev, margin, independent)


def _two_modes(noise: np.random.Generator, studies: int, n: int) -> np.ndarray:
    return np.where(noise.random((studies, n)) < 0.5, 0.9, 1.1) + noise.normal(0, 0.01, (studies, n))


CORRELATION = 0.5


def _autocorrelated(noise: np.random.Generator, studies: int, n: int) -> np.ndarray:
    steps = noise.normal(0, math.sqrt(1 - CORRELATION**2), (studies, n))
    steps[:, 0] = noise.normal(0, 1, studies)
    return np.exp(0.05 * lfilter([1.0], [1.0, -CORRELATION], steps, axis=1))


ZEROS, ABOVE = 0.2, 0.3
"""Share of zeros, and the standard deviation of the logarithms of the rest."""


def _with_zeros(noise: np.random.Generator, studies: int, n: int) -> np.ndarray:
    return np.where(noise.random((studies, n)) < ZEROS, 0.0, noise.lognormal(0, ABOVE, (studies, n)))


def _zero_quantile(share: float) -> float:
    return math.exp(ABOVE * float(ndtri((share - ZEROS) / (1 - ZEROS))))


_ZERO_MEAN = (1 - ZEROS) * math.exp(ABOVE**2 / 2)

POPULATIONS = (
    Population(
        "normal",
        "N(1, 0.05)",
        lambda noise, studies, n: noise.normal(1, 0.05, (studies, n)),
        mean=1.0,
        median=1.0,
        upper=1 + 0.05 * float(ndtri(0.9)),
        stdev=0.05,
        margin=0.1,
    ),
    _lognormal(
        "log-normal",
        "logarithms N(0, 0.5): skewness 1.75",
        lambda noise, studies, n: noise.lognormal(0, 0.5, (studies, n)),
        deviation=0.5,
        margin=1.5,
    ),
    Population(
        "bimodal",
        "0.9 or 1.1, each as likely, with N(0, 0.01)",
        _two_modes,
        mean=1.0,
        median=1.0,
        upper=1.1 + 0.01 * float(ndtri(0.8)),
        stdev=math.hypot(0.1, 0.01),
        margin=0.2,
    ),
    _lognormal(
        "autocorrelated",
        f"logarithms N(0, 0.05), each correlated {CORRELATION} with the one before",
        _autocorrelated,
        deviation=0.05,
        margin=0.1,
        independent=False,
    ),
    Population(
        "zeros",
        f"0 in {ZEROS:.0%}, else log-normal with logarithms N(0, {ABOVE})",
        _with_zeros,
        mean=_ZERO_MEAN,
        median=_zero_quantile(0.5),
        upper=_zero_quantile(0.9),
        stdev=math.sqrt((1 - ZEROS) * math.exp(2 * ABOVE**2) - _ZERO_MEAN**2),
        margin=1.0,
        zeros=True,
    ),
)
