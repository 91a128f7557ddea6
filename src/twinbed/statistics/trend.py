"""Does a metric drift in the order of runs, apart from the effects of its cells?

The test is the seasonal Kendall test (Hirsch, Slack and Smith 1982, Water Resour. Res. 18:107) with cells for seasons.  Only
runs of one cell are compared with each other, so that effects of levels cancel; S is the number of rising pairs less that of
falling pairs.  It is exact where no values are tied and there are at most EXACT pairs, else normal with the variance corrected
for ties, and for continuity.  The size is Sen's slope (1968, J. Am. Stat. Assoc. 63:1379), the median of all pairs' slopes, of
the values as given: for logarithms it is a relative drift for each run. The test assumes that runs are independent except for
the drift.  Beyond MOST_PAIRS pairs the median is that of DRAWN_PAIRS of them, drawn with a fixed seed: its rank among all is
off by 0.0002 of their number (standard error), which for so many is less than what the runs leave open.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

EXACT = 2000
MOST_PAIRS = 2**25
"""Of which all slopes are looked at: 256 MiB of them."""
DRAWN_PAIRS = 2**22
Slopes = NDArray[np.float64]
Series = Sequence[tuple[float, float]]
"""The runs of one cell: (position in the order of runs, value)."""


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
    """The drift over all cells; None where no cell has two runs."""
    cells = [sorted(cell) for cell in cells if len(cell) > 1]
    if not cells:
        return None
    pairs = sum(len(cell) * (len(cell) - 1) // 2 for cell in cells)
    rising = sum(_rising([value for _at, value in cell]) for cell in cells)
    slopes = _all_slopes(cells, pairs) if pairs <= MOST_PAIRS else _some_slopes(cells)
    return Trend(pairs, rising, float(np.median(slopes, overwrite_input=True)), _p_value(cells, pairs, rising))


def _rising(values: Sequence[float]) -> int:
    """Pairs of values, in their order, of which the second is larger, less those of which it is smaller."""
    rising, before = 0, list[float]()
    for value in values:
        below = bisect_left(before, value)
        above = len(before) - bisect_right(before, value, lo=below)
        rising += below - above
        before.insert(below, value)
    return rising


def _all_slopes(cells: Sequence[Series], pairs: int) -> Slopes:
    slopes, filled = np.empty(pairs), 0
    for cell in cells:
        at, values = np.array(cell, dtype=np.float64).T
        for index in range(len(cell) - 1):
            to = filled + len(cell) - 1 - index
            np.divide(values[index + 1 :] - values[index], at[index + 1 :] - at[index], out=slopes[filled:to])
            filled = to
    return slopes


def _some_slopes(cells: Sequence[Series]) -> Slopes:
    noise = np.random.default_rng(0)
    sizes = np.array([len(cell) for cell in cells])
    pairs = sizes * (sizes - 1.0)
    slopes = []
    for cell, drawn in zip(cells, noise.multinomial(DRAWN_PAIRS, pairs / pairs.sum()), strict=True):
        at, values = np.array(cell, dtype=np.float64).T
        one, other = noise.integers(len(cell), size=drawn), noise.integers(len(cell) - 1, size=drawn)
        other += other >= one
        slopes.append((values[other] - values[one]) / (at[other] - at[one]))
    return np.concatenate(slopes)


def _p_value(cells: Sequence[Series], pairs: int, rising: int) -> float:
    values = [[value for _at, value in cell] for cell in cells]
    if pairs <= EXACT and all(len(set(values_of_cell)) == len(values_of_cell) for values_of_cell in values):
        return _exact(list(map(len, values)), pairs, rising)
    spread = sum(_variance(values_of_cell) for values_of_cell in values)
    if spread == 0:
        return 1.0
    return min(1.0, 2 * float(ndtr(-max(0, abs(rising) - 1) / math.sqrt(spread))))


def _variance(values: Sequence[float]) -> float:
    n = len(values)
    ties = sum(count * (count - 1) * (2 * count + 5) for count in Counter(values).values())
    return (n * (n - 1) * (2 * n + 5) - ties) / 18


def _exact(sizes: Sequence[int], pairs: int, rising: int) -> float:
    """The probability of an S as far from 0 if all orders of each cell are equally likely. Discordant pairs add up over
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
