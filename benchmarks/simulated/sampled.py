"""Runs of many pairs, of which some are captured: how often the interval of a total holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from twinbed.statistics.finite import Work, total

SIZES = ((2, 16), (8, 16), (2, 20), (8, 80), (20, 80), (40, 80))
"""(pairs drawn, pairs)"""
Draw = Callable[[np.random.Generator, int, int], np.ndarray]
"""(noise, runs, pairs) -> an array of runs x pairs."""


@dataclass(frozen=True)
class Links:
    """What the pairs of a run have."""

    name: str
    about: str
    draw: Draw
    """Values; where the work of pairs is known, those for a piece of it."""
    holds: bool
    """Whether Student's interval may be expected to hold."""
    work: Draw | None = None
    slowed: float = 1.0
    """What captured pairs get done, of what they would get done otherwise."""


def _normal(deviation: float) -> Draw:
    return lambda noise, runs, of: np.maximum(noise.normal(1, deviation, (runs, of)), 0)


def _shares(noise: np.random.Generator, runs: int, of: int) -> np.ndarray:
    parts = noise.gamma(20, 1, (runs, of))
    return parts / parts.sum(axis=1, keepdims=True)


def _lognormal(noise: np.random.Generator, runs: int, of: int) -> np.ndarray:
    return noise.lognormal(0, 0.5, (runs, of))


def _two_modes(noise: np.random.Generator, runs: int, of: int) -> np.ndarray:
    return np.where(noise.random((runs, of)) < 0.5, 0.9, 1.1) + noise.normal(0, 0.01, (runs, of))


def _rare(noise: np.random.Generator, runs: int, of: int) -> np.ndarray:
    return noise.poisson(1, (runs, of)).astype(float)


POPULATIONS = (
    Links("alike", "normal, standard deviation 5 % of the mean", _normal(0.05), True),
    Links("unlike", "normal, 25 % of the mean", _normal(0.25), True),
    Links("competing", "shares of one link that all fill (gamma of shape 20)", _shares, True),
    Links("by work", "work as unlike, known of all; for a piece of it as alike", _normal(0.05), True, _normal(0.25)),
    Links("slowed", "the same, and captured pairs get a tenth less done", _normal(0.05), True, _normal(0.25), 0.9),
    Links("skewed", "log-normal, logarithms N(0, 0.5)", _lognormal, False),
    Links("two modes", "0.9 or 1.1, each as likely, with N(0, 0.01)", _two_modes, False),
    Links("rare", "Poisson counts of mean 1", _rare, False),
)


def coverage(links: Links, drawn: int, of: int, runs: int, seed: int) -> float:
    """The share of intervals that hold the total, of those that there are. Each run has links of its own, and a sample of its
    own of them, without replacement: pairs come in random order, and the first are taken. A total that rounding alone puts
    outside is inside."""
    noise = np.random.default_rng([seed, drawn, of, POPULATIONS.index(links)])
    work = np.ones((runs, of)) if links.work is None else links.work(noise, runs, of)
    work[:, :drawn] *= links.slowed
    values = work * noise.permuted(links.draw(noise, runs, of), axis=1)
    held = given = 0
    for own, done, truth in zip(values[:, :drawn].tolist(), work.tolist(), values.sum(axis=1).tolist(), strict=True):
        found = total(own, of, None if links.work is None else Work(done[:drawn], sum(done)))
        if found.low is not None and found.high is not None:
            given += 1
            held += found.low <= truth * (1 + 1e-12) and truth <= found.high * (1 + 1e-12)
    return held / given
