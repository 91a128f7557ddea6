"""Monotone regression: the monotone sequence nearest to the values by weighted least squares.

Pool adjacent violators (Ayer et al. 1955, Ann. Math. Stat. 26:641): neighbours in the wrong order are replaced by their mean
until none are.  Values are in the order of the variable they depend on, and ties in it are already averaged.
"""

from __future__ import annotations

from collections.abc import Sequence


def isotonic(values: Sequence[float], weights: Sequence[float] | None = None, *, increasing: bool = True) -> list[float]:
    """As many fitted values. Weights, by default 1, must be above 0."""
    sign = 1.0 if increasing else -1.0
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights if weights is not None else [1.0] * len(values), strict=True):
        mean, mass, count = sign * value, weight, 1
        while pools and pools[-1][0] >= mean:
            before, other, more = pools.pop()
            mean, mass, count = (before * other + mean * mass) / (other + mass), other + mass, count + more
        pools.append((mean, mass, count))
    return [sign * mean for mean, _mass, count in pools for _ in range(count)]
