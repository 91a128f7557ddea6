"""Permutation tests of two groups of replicates: dealings of their labels, and how small a p-value they can give.

All ways are counted if they are few; otherwise SAMPLED_WAYS are drawn, and (1 + hits) / (1 + sample) keeps the level (Phipson
and Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.bool_]
MOST_WAYS = 20_000
"""Where there are more ways to deal the labels, they are sampled."""
SAMPLED_WAYS = 9_999


def are_counted(n: int, m: int) -> bool:
    """Return whether all ways to deal the labels of n replicates and m are counted."""
    return math.comb(n + m, n) <= MOST_WAYS


def least_p(n: int, m: int) -> float:
    """Return the smallest p-value that n replicates compared with m can give."""
    if not are_counted(n, m):
        return 1 / (1 + SAMPLED_WAYS)
    # Groups of one size can be exchanged, which changes no distance.
    return (2 if n == m else 1) / math.comb(n + m, n)


def ways_within(labels: Labels, blocks: Sequence[Hashable]) -> int:
    """Return the number of ways to deal labels within blocks."""
    return math.prod(math.comb(size, ones) for size, ones in _sizes(labels, blocks).values())


def least_p_within(labels: Labels, blocks: Sequence[Hashable]) -> float:
    """Return the smallest p-value of a test that deals labels within blocks, if the two kinds may change places."""
    mirrored = all(2 * ones == size for size, ones in _sizes(labels, blocks).values())
    return (2 if mirrored else 1) / ways_within(labels, blocks)


def dealings(labels: Labels, blocks: Sequence[Hashable], most: int, seed: int = 0) -> tuple[Labels, bool]:
    """Return the labels as they are, then other dealings of them within blocks, and whether these are all dealings. Up to
    ``most`` ways each comes once; of more ways ``most`` less one are drawn."""
    if ways_within(labels, blocks) <= most:
        own = labels.tobytes()
        others = [dealing for dealing in _all_dealings(labels, blocks) if dealing.tobytes() != own]
        return np.array([labels, *others]), True
    noise = np.random.default_rng(seed)
    of = np.unique([list(dict.fromkeys(blocks)).index(block) for block in blocks], return_inverse=True)[1]
    drawn = np.empty((most, len(labels)), dtype=np.bool_)
    order = np.argsort(of, kind="stable")
    # Sorting random keys within each block permutes it.
    drawn[:, order] = labels[np.argsort(of + noise.random((most, len(labels))), axis=1)]
    drawn[0] = labels
    return drawn, False


def _sizes(labels: Labels, blocks: Sequence[Hashable]) -> dict[Hashable, tuple[int, int]]:
    """Return block -> labels in it, and how many of them are of the first kind."""
    size, ones = Counter(blocks), Counter(block for block, label in zip(blocks, labels, strict=True) if label)
    return {block: (size[block], ones[block]) for block in size}


def _all_dealings(labels: Labels, blocks: Sequence[Hashable]) -> Iterator[Labels]:
    places = {block: [at for at, own in enumerate(blocks) if own == block] for block in dict.fromkeys(blocks)}
    chosen = [combinations(at, int(labels[at].sum())) for at in places.values()]
    for ones in product(*chosen):
        dealt = np.zeros(len(labels), dtype=np.bool_)
        dealt[[at for of_block in ones for at in of_block]] = True
        yield dealt
