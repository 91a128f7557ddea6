"""How small a p-value a permutation test of two groups of replicates can give: it counts the ways to deal their labels.

All ways are counted where they are few; else SAMPLED_WAYS are drawn, and (1 + hits) / (1 + sample) keeps the level (Phipson and
Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9:39).
"""

from __future__ import annotations

import math

MOST_WAYS = 20_000
"""Where there are more ways to deal the labels, they are sampled."""
SAMPLED_WAYS = 9_999


def are_counted(n: int, m: int) -> bool:
    """Whether all ways to deal the labels of n replicates and m are counted."""
    return math.comb(n + m, n) <= MOST_WAYS


def least_p(n: int, m: int) -> float:
    """The smallest p-value that n replicates against m can give."""
    if not are_counted(n, m):
        return 1 / (1 + SAMPLED_WAYS)
    # Groups of one size can be exchanged, which changes no distance.
    return (2 if n == m else 1) / math.comb(n + m, n)
