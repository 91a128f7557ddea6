"""Comparison of two samples on a nominal scale: values are names, and only how often each occurs counts.

Distance: total variation, half the sum of |p_i - q_i|, which is also the largest |p(A) - q(A)| of any set A of names. Test of
no difference: Pearson's chi-square if every expected count is at least 5 (Cochran 1954, Biometrics 10:417), else a permutation
test of the same statistic. It takes all tables with the same margins if there are at most TABLES of them (Freeman and Halton
1951, Biometrika 38:141), else PERMUTATIONS shuffles with a fixed seed, the sample itself counted as one. Test at a margin:
Farrington and Manning's score test of two proportions (1990, Stat. Med. 9:1447) compares every set A with it. Equivalent needs
each set's two one-sided tests (intersection-union), so no correction; different needs one set's, corrected by the number of
sets (Bonferroni).  Limit: MOST_NAMES names, since there are 2^(names-1) - 1 sets.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, gammaln, ndtr

SMALLEST_EXPECTED = 5.0
TABLES = 20_000
PERMUTATIONS = 9_999
MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class NominalTest:
    """``method`` is ``chi-square``, ``exact`` or ``permutation``, of ``p_same``. The p-values at the margin are None for more
    than MOST_NAMES names."""

    total_variation: float
    p_same: float
    method: str
    smallest_expected: float
    """Below SMALLEST_EXPECTED the normal approximation of the tests at the margin is doubtful."""
    p_equivalent: float | None
    p_different: float | None


def total_variation(values: Sequence[float], reference: Sequence[float]) -> float:
    """Return the distance from 0, the same shares, to 1, no name in common."""
    counts, reference_counts = Counter(values), Counter(reference)
    return (
        sum(abs(counts[name] / len(values) - reference_counts[name] / len(reference)) for name in counts | reference_counts) / 2
    )


def nominal_test(values: Sequence[float], reference: Sequence[float], margin: float) -> NominalTest:
    """Compare two samples of at least two values each; equivalent is a total variation of at most the margin."""
    names = sorted({*values, *reference})
    counts, reference_counts = Counter(values), Counter(reference)
    table = np.array([[counts[name] for name in names], [reference_counts[name] for name in names]])
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    smallest = float(expected.min())
    p_same, method = _p_same(table, expected)
    p_equivalent = p_different = None
    if len(names) == 1:
        p_equivalent, p_different = _score_p(len(values), len(values), len(reference), len(reference), margin)
    elif len(names) <= MOST_NAMES:
        sets = list(_sets(len(names)))
        p_values = [
            _score_p(int(table[0, chosen].sum()), len(values), int(table[1, chosen].sum()), len(reference), margin)
            for chosen in (list(members) for members in sets)
        ]
        p_equivalent = max(inside for inside, _ in p_values)
        p_different = min(1.0, max(p_same, len(sets) * min(outside for _, outside in p_values)))
    return NominalTest(total_variation(values, reference), p_same, method, smallest, p_equivalent, p_different)


def _sets(names: int) -> Iterator[tuple[int, ...]]:
    """Yield every division of the names in two, by the part without the last name."""
    for size in range(1, names):
        yield from combinations(range(names - 1), size)


def _p_same(table: NDArray[np.float64], expected: NDArray[np.float64]) -> tuple[float, str]:
    if table.shape[1] == 1:
        return 1.0, "exact"
    statistic = float(((table - expected) ** 2 / expected).sum())
    if expected.min() >= SMALLEST_EXPECTED:
        return float(chdtrc(table.shape[1] - 1, statistic)), "chi-square"
    columns, first = table.sum(0).tolist(), int(table[0].sum())
    if math.prod(count + 1 for count in columns) <= TABLES:
        return _exact(columns, first, expected, statistic), "exact"
    return _permuted(table, expected, statistic), "permutation"


def _exact(columns: list[int], first: int, expected: NDArray[np.float64], statistic: float) -> float:
    """Return the share of the probability, given the margins, of tables at least as far from the expected one."""
    grid = np.indices([count + 1 for count in columns]).reshape(len(columns), -1).T
    rows = grid[grid.sum(1) == first]
    counts = np.array(columns)
    logarithms = (gammaln(counts + 1) - gammaln(rows + 1) - gammaln(counts - rows + 1)).sum(1)
    weights = np.exp(logarithms - logarithms.max())
    distances = ((rows - expected[0]) ** 2 / expected[0] + (counts - rows - expected[1]) ** 2 / expected[1]).sum(1)
    return float(weights[distances >= statistic * (1 - 1e-9)].sum() / weights.sum())


def _permuted(table: NDArray[np.float64], expected: NDArray[np.float64], statistic: float) -> float:
    noise = np.random.default_rng(0)
    columns, first = table.sum(0), int(table[0].sum())
    rows = noise.multivariate_hypergeometric(columns, first, size=PERMUTATIONS)
    distances = ((rows - expected[0]) ** 2 / expected[0] + (columns - rows - expected[1]) ** 2 / expected[1]).sum(1)
    return float((1 + (distances >= statistic * (1 - 1e-9)).sum()) / (1 + PERMUTATIONS))


def _score_p(x: int, n: int, y: int, m: int, margin: float) -> tuple[float, float]:
    """Return p-values of the two shares differing by at most, and by more than, the margin."""
    at_low, at_high = score_statistic(x, n, y, m, -margin), score_statistic(x, n, y, m, margin)
    inside = max(float(ndtr(-at_low)), float(ndtr(at_high)))
    return inside, min(1.0, 2 * min(float(ndtr(-at_high)), float(ndtr(at_low))))


def score_statistic(x: int, n: int, y: int, m: int, difference: float) -> float:
    """Return Farrington and Manning's z of x/n - y/m compared with a difference in (-1, 1) that is not 0."""
    p, q, theta = x / n, y / m, m / n
    # The most likely shares that differ by just this: a cubic's root.
    a = 1 + theta
    b = -(1 + theta + p + theta * q + difference * (theta + 2))
    c = difference**2 + difference * (2 * p + theta + 1) + p + theta * q
    d = -p * difference * (1 + difference)
    v = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(0.0, b**2 / (9 * a**2) - c / (3 * a))), v)
    w = (math.pi + math.acos(min(1.0, max(-1.0, v / u**3)))) / 3 if u else math.pi / 2
    own_share = min(1.0, max(0.0, 2 * u * math.cos(w) - b / (3 * a)))
    other_share = min(1.0, max(0.0, own_share - difference))
    error = math.sqrt(own_share * (1 - own_share) / n + other_share * (1 - other_share) / m)
    return (p - q - difference) / error if error else math.copysign(math.inf, p - q - difference)
