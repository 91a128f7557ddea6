"""Test of whether a metric drifts in the order of runs, apart from the effects of its cells. Res. 18:107) with cells for
seasons.  Only runs of one cell are compared with each other, so that effects of levels cancel; S is the number of rising pairs
less that of falling pairs.  It is exact if no values are tied and there are at most EXACT pairs, else normal with the variance
corrected for ties, and for continuity.  The size is Sen's slope (1968, J. Am. Stat. Assoc. 63:1379), the median of all pairs'
slopes of the given values: for logarithms it is a relative drift for each run. The test assumes that runs are independent
except for the drift.  Beyond MOST_PAIRS pairs the median is that of DRAWN_PAIRS of them, drawn with a fixed seed. Its rank
among all is off by 0.0002 of their number (standard error), less than the runs' own uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

EXACT = 2000
MOST_PAIRS = 2**25
"""The most pairs whose slopes are all computed: 256 MiB of them."""
DRAWN_PAIRS = 2**22
Slopes = NDArray[np.float64]
Series = Sequence[tuple[float, float]] | NDArray[np.float64]
"""The runs of one cell: (position in the order of runs, value)."""
Sorted = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Positions and values, in the order of runs."""


@dataclass(frozen=True, slots=True)
class Trend:
    pairs: int
    rising: int
    """The number of rising pairs less that of falling pairs."""
    slope: float
    """The change for a step of position."""
    p_value: float
    """Two-sided."""


def trend(cells: Sequence[Series]) -> Trend | None:
    """Test the drift over all cells; None if no cell has two runs."""
    in_order = [_sorted(cell) for cell in cells if len(cell) > 1]
    if not in_order:
        return None
    pairs = sum(len(at) * (len(at) - 1) // 2 for at, _ in in_order)
    of_cells = [values for _, values in in_order]
    rising = sum(map(_rising, of_cells))
    slopes = _all_slopes(in_order, pairs) if pairs <= MOST_PAIRS else _some_slopes(in_order)
    return Trend(pairs, rising, float(np.median(slopes, overwrite_input=True)), _p_value(of_cells, pairs, rising))


def _sorted(cell: Series) -> Sorted:
    at, values = np.array(cell, dtype=np.float64).T
    order = np.lexsort((values, at))
    return at[order], values[order]


def _rising(values: NDArray[np.float64]) -> int:
    """Return the pairs of values, in their order, of which the second is larger, less those of which it is smaller. Two ranks
    part at the highest bit in which they differ. So for each bit, of ranks that agree in all higher ones: the pairs of a 0 with
    a later 1 rise, those of a 1 with a later 0 fall."""
    ranks = np.unique(values, return_inverse=True)[1]
    rising = 0
    for bit in reversed(range(int(ranks.max()).bit_length())):
        ones = ranks >> bit & 1
        higher = ranks >> bit + 1  # sorted, as all higher bits have been seen
        begins = np.searchsorted(higher, higher)
        before = np.concatenate([[0], np.cumsum(ones)])
        ones_before = before[:-1] - before[begins]
        zeros_before = np.arange(len(ranks)) - begins - ones_before
        rising += int((zeros_before * ones).sum() - (ones_before * (1 - ones)).sum())
        ends = np.searchsorted(higher, higher, side="right")
        zeros = ends - begins - (before[ends] - before[begins])
        sorted_to = begins + np.where(ones, zeros + ones_before, zeros_before)
        following = np.empty_like(ranks)
        following[sorted_to] = ranks
        ranks = following
    return rising


def _all_slopes(cells: Sequence[Sorted], pairs: int) -> Slopes:
    slopes, filled = np.empty(pairs), 0
    for at, values in cells:
        for index in range(len(at) - 1):
            to = filled + len(at) - 1 - index
            np.divide(values[index + 1 :] - values[index], at[index + 1 :] - at[index], out=slopes[filled:to])
            filled = to
    return slopes


def _some_slopes(cells: Sequence[Sorted]) -> Slopes:
    noise = np.random.default_rng(0)
    sizes = np.array([len(at) for at, _ in cells])
    pairs = sizes * (sizes - 1.0)
    slopes = []
    for (at, values), drawn in zip(cells, noise.multinomial(DRAWN_PAIRS, pairs / pairs.sum()), strict=True):
        first, second = noise.integers(len(at), size=drawn), noise.integers(len(at) - 1, size=drawn)
        second += second >= first
        slopes.append((values[second] - values[first]) / (at[second] - at[first]))
    return np.concatenate(slopes)


def _p_value(cells: Sequence[NDArray[np.float64]], pairs: int, rising: int) -> float:
    counts = [np.unique(values, return_counts=True)[1] for values in cells]
    if pairs <= EXACT and all(int(count.max()) == 1 for count in counts):
        return _exact([len(values) for values in cells], pairs, rising)
    spread = sum(map(_variance, counts))
    if spread == 0:
        return 1.0
    return min(1.0, 2 * float(ndtr(-max(0, abs(rising) - 1) / math.sqrt(spread))))


def _variance(counts: NDArray[np.int64]) -> float:
    """Return the variance of S; ``counts`` is how often each value occurs."""
    n = int(counts.sum())
    ties = sum(count * (count - 1) * (2 * count + 5) for count in map(int, counts[counts > 1]))
    return (n * (n - 1) * (2 * n + 5) - ties) / 18


def _exact(sizes: Sequence[int], pairs: int, rising: int) -> float:
    """Return the probability of an S as far from 0 if all orders of each cell are equally likely. Discordant pairs add up over
    cells."""
    chances = [1.0]
    for size in sizes:
        for length in range(2, size + 1):
            wider = [0.0] * (len(chances) + length - 1)
            for discordant, chance in enumerate(chances):
                for more in range(length):
                    wider[discordant + more] += chance / length
            chances = wider
    tail = math.fsum(chances[: (pairs - abs(rising)) // 2 + 1])
    return min(1.0, 2 * tail)
