"""Do runs depend on their block, and on the run before them?

Blocks: Friedman's ranks within each row (1937, J. Am. Stat. Assoc. 32:675).  A row is one cell on one testbed, with its value
in each block; a row with a value missing is left out.  Up to PERMUTED values the p-value is that of PERMUTATIONS orders of each
row, drawn with a fixed seed, the one found counted too; beyond, Iman and Davenport's F (1980, Commun. Stat. A 9:571).
Neighbours: the rank version of von Neumann's ratio (Bartels 1982, J. Am.
Stat. Assoc. 77:40) of values in run order, normal approximation, for at least LEAST values; below 2 means that neighbours are
alike.  Assumes that what is expected of each value has been taken off.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
from scipy.special import fdtrc, ndtr

LEAST = 10
PERMUTED = 500
PERMUTATIONS = 4999


@dataclass(frozen=True, slots=True)
class Blocks:
    """``rows`` are those without a missing value. ``chi_square`` is Friedman's, corrected for ties."""

    rows: int
    blocks: int
    chi_square: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """``correlation`` is of each value with the next; ``ratio`` is Bartels's, 2 where order says nothing."""

    correlation: float
    ratio: float
    p_value: float
    """Two-sided."""


def block_effect(rows: Sequence[Sequence[float | None]]) -> Blocks | None:
    """One value a block in each row; None for fewer than two complete rows or blocks, or where no row varies."""
    complete = [[value for value in row if value is not None] for row in rows if None not in row]
    if len(complete) < 2 or len(complete[0]) < 2:
        return None
    n, k = len(complete), len(complete[0])
    ranked = [mid_ranks(row) for row in complete]
    sums = [sum(row[block] for row in ranked) for block in range(k)]
    ties = sum(count**3 - count for row in complete for count in Counter(row).values())
    spread = n * k * (k + 1) / 12 - ties / (12 * (k - 1))
    if spread <= 0:
        return None
    chi_square = sum((total - n * (k + 1) / 2) ** 2 for total in sums) / spread
    if n * k <= PERMUTED:
        return Blocks(n, k, chi_square, _permuted(ranked, sums))
    left = n * (k - 1) - chi_square
    p_value = 0.0 if left <= 1e-9 else float(fdtrc(k - 1, (k - 1) * (n - 1), (n - 1) * chi_square / left))
    return Blocks(n, k, chi_square, p_value)


def _permuted(ranked: Sequence[Sequence[float]], sums: Sequence[float]) -> float:
    """Share of orders within rows whose sums of ranks lie as far apart."""
    rows = np.broadcast_to(np.array(ranked), (PERMUTATIONS, len(ranked), len(sums)))
    drawn = np.random.default_rng(0).permuted(rows, axis=2).sum(1)
    found = float(np.square(sums).sum())
    return float((1 + (np.square(drawn).sum(1) >= found * (1 - 1e-12)).sum()) / (1 + PERMUTATIONS))


def mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for index in order[start:end]:
            found[index] = (start + end + 1) / 2
        start = end
    return found


def neighbours(values: Sequence[float]) -> Neighbours | None:
    """Of values in the order of runs; None for fewer than LEAST, or where nothing varies."""
    n = len(values)
    if n < LEAST or max(values) == min(values):
        return None
    found, centre = mid_ranks(values), (n + 1) / 2
    squares = sum((rank - centre) ** 2 for rank in found)
    ratio = sum((after - before) ** 2 for before, after in pairwise(found)) / squares
    spread = 4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    mean = fmean(values)
    total = math.fsum((value - mean) ** 2 for value in values)
    lagged = math.fsum((one - mean) * (two - mean) for one, two in pairwise(values))
    return Neighbours(lagged / total, ratio, min(1.0, 2 * float(ndtr(-abs(ratio - 2) / math.sqrt(spread)))))
