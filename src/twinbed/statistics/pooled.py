"""One ratio for many cells: the geometric mean of theirs, with an interval, and whether the cells agree.

Each cell weighs the same, as in the geometric mean that benchstat and SPEC print, so that the number is about these cells and
no population of them. Cells whose values are paired by the same blocks or sessions are averaged within each: Student's t of the
mean differences of blocks, which holds whatever the cells of a block share.  Otherwise the variances of the cells' differences
add up, with Satterthwaite's degrees of freedom.

Agreement is Cochran's Q of the cells' logarithms (1954, Biometrics 10:101), with Welch's correction for estimated variances
(1951, Biometrika 38:330), which is Welch's analysis of variance of the cells' ratios.  It takes cells as independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from scipy.special import fdtrc, stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.moments import standard_error, variance
from twinbed.statistics.sample import Sample


@dataclass(frozen=True, slots=True)
class Cell:
    """The logarithms of one cell's positive values, in the order of pairs where it has them; at least two of each."""

    one: Sequence[float]
    two: Sequence[float]


@dataclass(frozen=True, slots=True)
class PooledRatio:
    ratio: float
    interval: Bounds
    p_agree: float | None
    """The p-value that the true ratio is the same in all cells; None for one cell, or if some cell does not vary."""


def pooled_ratio(cells: Sequence[Cell], level: float, *, paired: bool) -> PooledRatio | None:
    """Pool the cells' ratios; None without cells, or if nothing varies. ``paired``: all cells have the same pairs, in the same
    order."""
    if not cells:
        return None
    differences = [Sample.of(cell.one).average - Sample.of(cell.two).average for cell in cells]
    of_cells = [standard_error(cell.one, cell.two, paired) for cell in cells]
    if paired:
        within = [[x - y for x, y in zip(cell.one, cell.two, strict=True)] for cell in cells]
        blocks = [fmean(of_block) for of_block in zip(*within, strict=True)]
        error, df = math.sqrt(variance(blocks) / len(blocks)), len(blocks) - 1.0
    else:
        squares = [error**2 for error, _ in of_cells]
        error = math.sqrt(sum(squares)) / len(cells)
        df = sum(squares) ** 2 / sum(each**2 / own for each, (_, own) in zip(squares, of_cells, strict=True)) if error else 1.0
    if not error:
        return None
    middle, half = fmean(differences), float(stdtrit(df, (1 + level) / 2)) * error
    interval = Bounds(math.exp(middle - half), math.exp(middle + half), level)
    return PooledRatio(math.exp(middle), interval, _agree(differences, of_cells))


def _agree(differences: Sequence[float], errors: Sequence[tuple[float, float]]) -> float | None:
    k = len(differences)
    if k < 2 or not all(error for error, _ in errors):
        return None
    weights = [1 / error**2 for error, _ in errors]
    total = sum(weights)
    mean = sum(weight * each for weight, each in zip(weights, differences, strict=True)) / total
    q = sum(weight * (each - mean) ** 2 for weight, each in zip(weights, differences, strict=True))
    off = sum((1 - weight / total) ** 2 / df for weight, (_, df) in zip(weights, errors, strict=True))
    statistic = q / (k - 1) / (1 + 2 * (k - 2) * off / (k**2 - 1))
    return float(fdtrc(k - 1, (k**2 - 1) / (3 * off), statistic))
