"""Tests whether runs depend on their block, and on the run before them.

Blocks: a row is one cell on one testbed, with its value in each block.  Each row is brought to mean 0 and variance 1, since
testbeds differ in both.  The sum of squares between blocks is compared with those of other orders of each row (Pitman 1938,
Biometrika 29:322).  This is Friedman's test with the values themselves for scores, which detects one bad block where ranks do
not.  Up to PERMUTED values the p-value counts PERMUTATIONS orders drawn with a fixed seed, and the observed one; for more
values it is that of the F of the two-way analysis.  A row with a missing value, or that does not vary, is left out.

Neighbours: the rank version of von Neumann's ratio (Bartels 1982, J. Am. Stat. Assoc. 77:40) of values in run order, normal
approximation, for at least LEAST values.  A value below 2 means that neighbours are alike.  The test assumes that the
expectation of each value has been subtracted, and that values are in random order otherwise.  Residuals of cells measured one
after the other are not in random order: their cells differ in spread and shape.  Function ``dependence`` therefore compares the
correlation of neighbours' ranks with those of orders within the cells, the places of each cell kept.

Are the values of one cluster, such as all runs of a day, more alike than those of different ones?

The intraclass correlation comes from one-way analysis of variance (Donner and Koval 1980, Biometrics 36:19): the share of the
variance that lies between clusters, after the mean of each cell is taken off.  Its p-value counts PERMUTATIONS random orders of
the values within each cell, and the observed order: in a random order no value depends on its cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtr

from twinbed.statistics.moments import midranks, variance, varies

LEAST = 10
PERMUTED = 500
PERMUTATIONS = 4999
ORDERS = 49
AT_ONCE = 2**20
"""Values of drawn orders that are held at once."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Blocks:
    """``rows`` are those that were used. ``statistic`` is about chi-square with one degree of freedom less than blocks."""

    rows: int
    blocks: int
    statistic: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """``correlation`` is of each value with the next; ``ratio`` is Bartels's, 2 where order says nothing."""

    correlation: float
    ratio: float
    p_value: float
    """Two-sided."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """``correlation`` is between the rank of each value and the next's; ``p_value`` is two-sided, from orders within groups."""

    correlation: float
    p_value: float


def dependence(values: Sequence[float] | Floats, groups: Sequence[int] | NDArray[np.intp]) -> Dependence | None:
    """Return the dependence of values on the order of runs; None for fewer than LEAST, or if nothing varies. Values of one
    group could as well have come in any order. Up to PERMUTED values the p-value counts PERMUTATIONS drawn orders and the
    observed one. For more values it is normal with the mean and the variance of ORDERS drawn ones."""
    n = len(values)
    if n < LEAST or np.ptp(np.asarray(values)) == 0:
        return None
    ranks = midranks(values) - (n + 1) / 2
    of = np.asarray(groups)
    product, noise = float(ranks[:-1] @ ranks[1:]), np.random.default_rng(0)
    # Sorting random keys within each group permutes it; its places are where the stable sort finds it.
    places, products = np.argsort(of, kind="stable"), np.empty(PERMUTATIONS if n <= PERMUTED else ORDERS)
    step = max(1, AT_ONCE // n)
    for begin in range(0, len(products), step):
        keys = of + noise.random((len(products[begin : begin + step]), n))
        drawn = np.empty_like(keys)
        drawn[:, places] = ranks[np.argsort(keys, axis=1)]
        products[begin : begin + step] = (drawn[:, :-1] * drawn[:, 1:]).sum(1)
    centre, correlation = float(products.mean()), product / float(ranks @ ranks)
    if n <= PERMUTED:
        farther = int((np.abs(products - centre) >= abs(product - centre) * (1 - 1e-9)).sum())
        return Dependence(correlation, (1 + farther) / (1 + PERMUTATIONS))
    spread = float(products.std(ddof=1))
    return Dependence(correlation, min(1.0, 2 * float(ndtr(-abs(product - centre) / spread))) if spread else 1.0)


def block_effect(rows: Sequence[Sequence[float | None]]) -> Blocks | None:
    """Test for an effect of blocks, from one value a block in each row; None for fewer than two usable rows, or two blocks."""
    complete = [[value for value in row if value is not None] for row in rows if None not in row]
    scaled = [_standardised(row) for row in complete if len(row) > 1 and varies(row)]
    if len(scaled) < 2:
        return None
    n, k = len(scaled), len(scaled[0])
    statistic = sum(sum(row[block] for row in scaled) ** 2 for block in range(k)) / n
    if n * k <= PERMUTED:
        return Blocks(n, k, statistic, _permuted(scaled, statistic))
    left = n * (k - 1) - statistic
    p_value = 0.0 if left <= 0 else float(fdtrc(k - 1, (k - 1) * (n - 1), (n - 1) * statistic / left))
    return Blocks(n, k, statistic, p_value)


def _standardised(row: Sequence[float]) -> list[float]:
    mean, deviation = fmean(row), math.sqrt(variance(row))
    return [(value - mean) / deviation for value in row]


def _permuted(scaled: Sequence[Sequence[float]], statistic: float) -> float:
    """Return the share of orders within rows whose blocks lie as far apart."""
    rows = np.broadcast_to(np.array(scaled), (PERMUTATIONS, len(scaled), len(scaled[0])))
    drawn = np.square(np.random.default_rng(0).permuted(rows, axis=2).sum(1)).sum(1) / len(scaled)
    return float((1 + (drawn >= statistic * (1 - 1e-9)).sum()) / (1 + PERMUTATIONS))


def neighbours(values: Sequence[float]) -> Neighbours | None:
    """Correlate neighbours among values in the order of runs; None for fewer than LEAST, or if nothing varies."""
    n = len(values)
    if n < LEAST or max(values) == min(values):
        return None
    ranks, centre = midranks(values).tolist(), (n + 1) / 2
    squares = sum((rank - centre) ** 2 for rank in ranks)
    ratio = sum((after - before) ** 2 for before, after in pairwise(ranks)) / squares
    spread = 4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    mean = fmean(values)
    total = math.fsum((value - mean) ** 2 for value in values)
    lagged = math.fsum((value - mean) * (following - mean) for value, following in pairwise(values))
    return Neighbours(lagged / total, ratio, min(1.0, 2 * float(ndtr(-abs(ratio - 2) / math.sqrt(spread)))))


Integers = NDArray[np.int64]

CLUSTER_PERMUTATIONS = 999


@dataclass(frozen=True, slots=True)
class Clustering:
    clusters: int
    correlation: float
    """Intraclass; below 0 where values of one cluster are less alike than those of different ones."""
    p_value: float
    """One-sided: that values of one cluster are no more alike."""


def clustering(
    values: Sequence[float] | Floats, cells: Sequence[int] | Integers, clusters: Sequence[int] | Integers
) -> Clustering | None:
    """Test values less the means of their cells, with the cell and the cluster of each. None if no cell has values of two
    clusters, no cluster has two values, or nothing varies."""
    residuals, cell, cluster = np.asarray(values, dtype=float), np.asarray(cells), np.unique(clusters, return_inverse=True)[1]
    counts = np.bincount(cluster)
    n, k = len(residuals), len(counts)
    pairs = np.unique(np.stack([cell, cluster]), axis=1)[0]
    crossed = len(pairs) > len(np.unique(pairs))
    if k < 2 or n <= k or not crossed or np.ptp(residuals) <= 1e-12 * np.abs(residuals).max():
        return None
    noise = np.random.default_rng(0)
    # Sorting random keys within each cell permutes it.
    of, places = np.unique(cell, return_inverse=True)[1], np.argsort(cell, kind="stable")
    one_hot = (cluster[:, None] == np.arange(k)).astype(float)

    def between(rows: Floats) -> Floats:
        return np.asarray((np.square(rows @ one_hot) / counts).sum(-1) - np.square(rows.sum(-1)) / n)

    def drawn(orders: int) -> Floats:
        rows = np.empty((orders, n))
        rows[:, places] = residuals[np.argsort(of + noise.random(rows.shape), axis=1)]
        return rows

    own = float(between(residuals))
    total = float(np.square(residuals - residuals.mean()).sum())
    mean_between, mean_within = own / (k - 1), (total - own) / (n - k)
    size = (n - np.square(counts).sum() / n) / (k - 1)
    correlation = (mean_between - mean_within) / (mean_between + (size - 1) * mean_within)
    step = max(1, AT_ONCE // n)
    orders = [min(step, CLUSTER_PERMUTATIONS - begin) for begin in range(0, CLUSTER_PERMUTATIONS, step)]
    farther = sum(int((between(drawn(order)) >= own * (1 - 1e-9)).sum()) for order in orders)
    return Clustering(k, float(correlation), (1 + farther) / (1 + CLUSTER_PERMUTATIONS))
