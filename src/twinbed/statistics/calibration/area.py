"""How far two curves are apart: the area between their logarithms over ln payload, by the width that it is over.

    area = integral of |ln f1 - ln f2| d ln p / width

0.1 is a mean difference of about 10 %, whichever way.  Payloads are redrawn whole for the interval (percentile bootstrap),
never runs: runs of one payload say nothing of another.  Noise makes areas larger, never smaller, so that 0 is in no interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.bounds import Bounds

Doubles = NDArray[np.float64]
DRAWS = 2_000
LEAST = 5
"""The fewest payloads for an interval: redrawing fewer says nothing."""


@dataclass(frozen=True, slots=True)
class Area:
    value: float
    interval: Bounds | None
    """None for few payloads."""
    payloads: int


def area(log_payload: Doubles, differences: Doubles, level: float = 0.95, seed: int = 1) -> Area:
    """Measure the area between two curves. Raises ValueError for fewer than two payloads. ``differences`` (payloads, kinds) are
    ln f1 - ln f2 where both were measured; kinds, such as thread counts, weigh alike."""
    if len(log_payload) < 2:
        raise ValueError("an area needs two payloads that both testbeds have")
    drawn = _redrawn(log_payload, [differences], seed)[:, 0]
    return Area(_area(log_payload, differences), _interval(drawn, level, len(log_payload)), len(log_payload))


def difference_of_areas(log_payload: Doubles, own: Doubles, other: Doubles, level: float = 0.95, seed: int = 1) -> Area:
    """Return the area of ``own`` less that of ``other``, both from the same third curve, by the same redrawn payloads."""
    drawn = _redrawn(log_payload, [own, other], seed)
    value = _area(log_payload, own) - _area(log_payload, other)
    return Area(value, _interval(drawn[:, 0] - drawn[:, 1], level, len(log_payload)), len(log_payload))


def _redrawn(log_payload: Doubles, curves: list[Doubles], seed: int) -> Doubles:
    random = np.random.default_rng(seed)
    areas = np.empty((DRAWS, len(curves)))
    for draw in range(DRAWS):
        chosen = random.integers(0, len(log_payload), len(log_payload))
        while len(np.unique(chosen)) < 2:
            chosen = random.integers(0, len(log_payload), len(log_payload))
        areas[draw] = [_area(log_payload[chosen], curve[chosen]) for curve in curves]
    return areas


def _interval(drawn: Doubles, level: float, payloads: int) -> Bounds | None:
    if payloads < LEAST:
        return None
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Bounds(float(low), float(high), level)


def _area(log_payload: Doubles, differences: Doubles) -> float:
    """Integrate straight lines between the payloads, exactly even if they cross 0."""
    places, first = np.unique(log_payload, return_index=True)
    left, right = differences[first][:-1], differences[first][1:]
    width = np.diff(places)[:, None]
    same = left * right >= 0
    total = np.abs(left) + np.abs(right)
    crossing = (left**2 + right**2) / np.where(total > 0, total, 1.0)
    pieces = width / 2 * np.where(same, total, crossing)
    return float(pieces.sum(axis=0).mean() / (places[-1] - places[0]))
