"""Test whether two groups of replicates come from one chain, by permutation.

The statistic is the Jensen-Shannon distance between the chains of the two pooled groups (``Transitions.compare``).  If all
replicates come from one chain, labels do not matter.  The p-value is the share of all labelings whose distance is at least the
observed one, itself included.  It is exact for any variation and length of replicates: A/A data are called different in at most
alpha of the studies.  The test permutes replicates, never calls, since calls within a run depend on each other.

With few replicates all labelings are counted.  With many, a random sample of them is drawn from a seed; (1 + hits) /
(1 + sample) keeps the level (Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39).  Three and three replicates reach
p = 0.1 at best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np
from numpy.typing import NDArray

from twinbed._core import Transitions
from twinbed.statistics.permutations import SAMPLED_WAYS, are_counted, least_p

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]
"""Ways x replicates: whether each replicate is of the first group."""
Positions = NDArray[np.intp]

BATCH = 256
TIE = 1e-12
"""Distances this close are equal: the same division rounds differently with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Sameness:
    """The result of the test. ``distance`` and ``p_value`` are None if a group has no transitions."""

    distance: float | None
    p_value: float | None
    ways: int
    """The number of labelings that the p-value counts."""
    exact: bool
    """True if these are all labelings."""
    least_p: float
    """The smallest p-value that this many replicates can reach. If it is above alpha, no difference can be shown."""


def same_chain(own: Sequence[Transitions], reference: Sequence[Transitions], *, order: int = 1, seed: int = 0) -> Sameness:
    """Test one group of replicates against another."""
    replicates = [*own, *reference]
    n, k = len(replicates), len(own)
    exact, least = are_counted(k, n - k), least_p(k, n - k)
    counts, rows = _counts(replicates, order)
    distance = float(_distances(np.arange(n)[None, :] < k, counts, rows)[0]) if counts.size else math.nan
    if math.isnan(distance):
        return Sameness(None, None, 0, exact, least)
    hits, dealt = 0, 0
    for labels in _dealt(n, k, exact, seed):
        distances = _distances(labels, counts, rows)
        # A labeling that leaves a group without transitions has no distance; it counts against a difference.
        hits += int((~(distances < distance - TIE)).sum())
        dealt += len(labels)
    p_value = hits / dealt if exact else (1 + hits) / (1 + dealt)
    return Sameness(distance, p_value, dealt, exact, least)


def _dealt(n: int, k: int, exact: bool, seed: int) -> Iterator[Labels]:
    """Yield labels of the first group, a batch of labelings at a time."""
    if exact:
        ways = combinations(range(n), k)
        while batch := list(islice(ways, BATCH)):
            labels = np.zeros((len(batch), n), dtype=bool)
            labels[np.repeat(np.arange(len(batch)), k), np.fromiter(chain.from_iterable(batch), dtype=np.intp)] = True
            yield labels
        return
    chance = np.random.default_rng(seed)
    for start in range(0, SAMPLED_WAYS, BATCH):
        size = min(BATCH, SAMPLED_WAYS - start)
        yield chance.permuted(np.tile(np.arange(n) < k, (size, 1)), axis=1)


def _counts(replicates: Sequence[Transitions], order: int) -> tuple[Floats, Positions]:
    """Return counts of each transition in each replicate, ordered by state, and where each state's transitions begin."""
    by_replicate: list[dict[tuple[str, str], int]] = []
    for replicate in replicates:
        edges = replicate.edges(order)
        keys = zip(edges["state"].to_pylist(), edges["call"].to_pylist(), strict=True)
        by_replicate.append(dict(zip(keys, edges["count"].to_pylist(), strict=True)))
    keys_of_all = sorted(set().union(*by_replicate))
    counts = np.array([[of_replicate.get(key, 0) for key in keys_of_all] for of_replicate in by_replicate], dtype=float)
    begins = [at for at, key in enumerate(keys_of_all) if at == 0 or keys_of_all[at - 1][0] != key[0]]
    return counts, np.array(begins, dtype=np.intp)


def _distances(labels: Labels, counts: Floats, rows: Positions) -> Floats:
    """Return the distance of each labeling, NaN if a group has no transitions."""
    groups = [labels.astype(float) @ counts, (~labels).astype(float) @ counts]
    totals = [np.add.reduceat(group, rows, axis=1) for group in groups]
    width = np.diff(np.append(rows, counts.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = (np.nan_to_num(group / np.repeat(total, width, axis=1)) for group, total in zip(groups, totals, strict=True))
        middle = (p + q) / 2
        terms = sum(np.where(row > 0, row / 2 * np.log2(row / middle), 0.0) for row in (p, q))
        bits = np.add.reduceat(terms, rows, axis=1).clip(0, 1)
        bits = np.where((totals[0] > 0) & (totals[1] > 0), bits, 1.0)
        weight = sum(total / total.sum(axis=1, keepdims=True) for total in totals) / 2
        distances: Floats = np.sqrt((weight * bits).sum(axis=1))
    return distances
