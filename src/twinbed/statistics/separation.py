"""Separation of two kinds of runs: the area under the ROC curve, and whether it is more than chance. the area under the ROC
curve, whether it is more than chance, and how sure.

The area is that of ``pairs_out``: its rules are fitted again in each fold, so that it varies far more than that of one score.
DeLong's variance, even with runs as its clusters (Obuchowski 1997, Biometrics 53:567), is half of what it should be.  The test
deals the labels of runs again and gives the chance of an area as large among equals, exactly.  The interval takes its width
from the same dealings, the larger of both sides, on a scale where a share's variance is the same everywhere (arcsine of its
root, Anscombe 1948, Biometrika 35:246). It holds 0.5 if the observed area is among the middle ``level`` of dealt ones, and so
at least as often as it states among equals.  docs/detectability.md has how often it holds other areas.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.pairs_out import PairsOut
from twinbed.statistics.permutations import dealings, least_p_within

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Labels = NDArray[np.bool_]

MOST_DEALINGS = 1_000
SLACK = 1e-9
"""Areas closer than this are equal: they are sums of the same terms in another order."""


@dataclass(frozen=True, slots=True)
class Separation:
    area: float
    """From 0 to 1; 0.5 is chance, below it the rule was wrong more often than right."""
    interval: Bounds
    p_value: float
    """The chance of an area as large or larger among equals."""
    exact: bool
    """True if all dealings were counted."""


def separation(
    folds: PairsOut,
    labels: Labels,
    blocks: Sequence[Hashable] | None = None,
    level: float = 0.95,
    most: int = MOST_DEALINGS,
) -> Separation:
    """Measure the separation of at least two runs of each kind. ``labels`` and ``blocks`` are of runs; None is one block."""
    dealt, exact = dealings(labels, blocks if blocks is not None else [0] * len(labels), most)
    areas = folds.areas(dealt)
    area = float(areas[0])
    p_value = float(np.mean(areas >= area - SLACK))
    return Separation(area, _interval(area, areas, level), p_value, exact)


def _interval(area: float, dealt: Floats, level: float) -> Bounds:
    ordered = np.sort(dealt)
    beyond = math.floor((1 - level) / 2 * len(ordered) + SLACK)
    low, high = (math.asin(math.sqrt(each)) for each in (ordered[beyond], ordered[-1 - beyond]))
    at, chance = math.asin(math.sqrt(area)), math.pi / 4
    half = max(high - chance, chance - low, 0.0)
    below, above = at - half, at + half
    start, end = (math.sin(min(max(each, 0.0), math.pi / 2)) ** 2 for each in (below, above))
    return Bounds(start, end, level)


def alone(values: Sequence[float | str | None], dealt: Labels) -> Floats:
    """Return the area that one feature alone gives, for each dealing; ``values`` has one for each run.

    Numbers are taken in the better order, up or down, texts in the best order of all. Both orders are chosen for each dealing,
    which makes the area optimistic but leaves p-values true.  Missing numbers are in the middle.
    """
    if any(isinstance(value, str) for value in values):
        codes = np.unique([str(value) for value in values], return_inverse=True)[1]
        of = (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)
        ones, others = dealt @ of, ~dealt @ of
        order = np.argsort(ones / (ones + others), axis=1, kind="stable")
        ones, others = (np.take_along_axis(each, order, axis=1) for each in (ones, others))
        below = np.cumsum(others, axis=1) - others
        areas = (ones * (below + others / 2)).sum(axis=1) / (ones.sum(axis=1) * others.sum(axis=1))
    else:
        known = np.array([math.nan if value is None else float(value) for value in values])
        present = known[~np.isnan(known)]
        ranks = _ranks(np.where(np.isnan(known), np.median(present) if len(present) else 0.0, known))
        count = dealt.sum(axis=1)
        areas = (dealt @ ranks - count * (count + 1) / 2) / (count * (len(known) - count))
        areas = np.maximum(areas, 1 - areas)
    return np.asarray(areas, dtype=np.float64)


def any_as_large(areas: Floats) -> Floats:
    """Return each feature's p-value corrected for all features, whatever their dependence.

    A feature is a line of ``areas``, whose first column is of the labels as they are. The p-value is the chance that any
    feature has an area as large among equals (Westfall and Young 1993, Resampling-Based Multiple Testing, single-step maximum).
    """
    largest = areas.max(axis=0)
    p_values: Floats = (largest[None] >= areas[:, :1] - SLACK).mean(axis=1)
    return p_values


def apart(values: Sequence[float | str | None], labels: Labels) -> float:
    """Return how many standard deviations within the kinds the means of numbers are apart; infinite if they do not vary, 0 for
    texts."""
    if any(value is None or isinstance(value, str) for value in values):
        return 0.0
    numbers = np.array([float(value) for value in values if value is not None])
    one, other = numbers[labels], numbers[~labels]
    distance, spread = abs(float(one.mean() - other.mean())), math.sqrt((float(one.var()) + float(other.var())) / 2)
    return distance / spread if spread > SLACK * distance else math.inf if distance else 0.0


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1; ties have their mean rank."""
    _, at, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[at]
    return ranks


def least_p(labels: Labels, blocks: Sequence[Hashable] | None = None) -> float:
    """Return the smallest p-value that the test can give: areas are the same if the two kinds change places."""
    return max(least_p_within(labels, blocks if blocks is not None else [0] * len(labels)), 1 / MOST_DEALINGS)


def runs_needed(alpha: float, within_blocks: bool) -> int:
    """Return how many runs of each kind a test at ``alpha`` needs to be able to show anything."""
    runs = 2
    while (2 / (2**runs if within_blocks else math.comb(2 * runs, runs))) > alpha and runs < 100:
        runs += 1
    return runs
