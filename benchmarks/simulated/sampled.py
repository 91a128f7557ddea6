"""Runs of many pairs, of which some are captured: how often the interval of a total holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twinbed.statistics.finite import total

SIZES = ((2, 16), (8, 16), (2, 20), (8, 80), (20, 80), (40, 80))
"""(pairs drawn, pairs)"""


@dataclass(frozen=True)
class Links:
    """What the pairs of a run have: an array of runs x pairs."""

    name: str
    about: str
    draw: Callable[[np.random.Generator, int, int], np.ndarray]
    holds: bool
    """Whether Student's interval may be expected to hold."""


def _normal(deviation: float) -> Callable[[np.random.Generator, int, int], np.ndarray]:
    return lambda noise, runs, of: np.maximum(noise.normal(1, deviation, (runs, of)), 0)


def _shares(noise: np.random.Generator, runs: int, of: int) -> np.ndarray:
    parts = noise.gamma(20, 1, (runs, of))
    return parts / parts.sum(axis=1, keepdims=True)


def _two_modes(noise: np.random.Generator, runs: int, of: int) -> np.ndarray:
    return np.where(noise.random((runs, of)) < 0.5, 0.9, 1.1) + noise.normal(0, 0.01, (runs, of))


POPULATIONS = (
    Links("alike", "normal, standard deviation 5 % of the mean: packets of pairs that do the same work", _normal(0.05), True),
    Links("unlike", "normal, 25 % of the mean", _normal(0.25), True),
    Links(
        "competing", "shares of one link that all fill, gamma of shape 20: more for one is less for the others", _shares, True
    ),
    Links("skewed", "log-normal, logarithms N(0, 0.5)", lambda noise, *size: noise.lognormal(0, 0.5, size), False),
    Links("two modes", "0.9 or 1.1, each as likely, with N(0, 0.01): pairs on fast and on slow processors", _two_modes, False),
    Links(
        "rare", "Poisson counts of mean 1: a retransmission here and there", lambda noise, *size: noise.poisson(1, size), False
    ),
)


def coverage(links: Links, drawn: int, of: int, runs: int, seed: int) -> float:
    """The share of intervals that hold the total, of those that there are. Each run has links of its own, and a sample of its
    own of them, without replacement; a total that rounding alone puts outside is inside."""
    noise = np.random.default_rng([seed, drawn, of, POPULATIONS.index(links)])
    values = noise.permuted(links.draw(noise, runs, of), axis=1)
    held = given = 0
    for own, truth in zip(values[:, :drawn].tolist(), values.sum(axis=1).tolist(), strict=True):
        found = total(own, of)
        if found.low is not None and found.high is not None:
            given += 1
            held += found.low <= truth * (1 + 1e-12) and truth <= found.high * (1 + 1e-12)
    return held / given
