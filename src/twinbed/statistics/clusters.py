"""Are the values of one cluster, such as all runs of a day, more alike than those of different ones?

The intraclass correlation comes from one-way analysis of variance (Donner and Koval 1980, Biometrics 36:19): the share of the
variance that lies between clusters, after the mean of each cell is taken off.  Its p-value counts PERMUTATIONS random orders of
the values within each cell, and the observed order: in a random order no value depends on its cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PERMUTATIONS = 999
AT_ONCE = 2**20
"""Values of drawn orders that are held at once."""


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
    """Test values less the means of their cells, with the cell and the cluster of each.

    None if no cell has values of two clusters, no cluster has two values, or nothing varies.
    """
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
    orders = [min(step, PERMUTATIONS - begin) for begin in range(0, PERMUTATIONS, step)]
    farther = sum(int((between(drawn(each)) >= own * (1 - 1e-9)).sum()) for each in orders)
    return Clustering(k, float(correlation), (1 + farther) / (1 + PERMUTATIONS))
