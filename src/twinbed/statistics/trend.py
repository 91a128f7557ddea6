"""Does a metric drift in the order of runs, apart from the effects of its cells?

The test is the seasonal Kendall test (Hirsch, Slack and Smith 1982, Water Resour. Res. 18:107) with cells for seasons.  Only
runs of one cell are compared with each other, so that effects of levels cancel; S is the number of rising pairs less that of
falling pairs.  It is exact where no values are tied and there are at most EXACT pairs, else normal with the variance corrected
for ties, and for continuity.  The size is Sen's slope (1968, J. Am. Stat. Assoc. 63:1379), the median of all pairs' slopes, of
the values as given: for logarithms it is a relative drift for each run. The test assumes that runs are independent except for
the drift.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scipy.special import ndtr

EXACT = 2000
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
    slopes, rising = [], 0
    for cell in cells:
        for index, (at, value) in enumerate(cell):
            for later, after in cell[index + 1 :]:
                slopes.append((after - value) / (later - at))
                rising += (after > value) - (after < value)
    return Trend(len(slopes), rising, median(slopes), _p_value(cells, len(slopes), rising))


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
