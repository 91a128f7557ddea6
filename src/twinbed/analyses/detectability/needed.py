"""How many packets an observer needs to be right so often."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinbed.analyses.detectability.result import Length, Needed
from twinbed.statistics.capacity import isotonic

TARGET = 0.95
"""Balanced accuracy."""
DRAWS = 999


def needed(
    lengths: Sequence[Length], correct: Sequence[NDArray[np.float64]], labels: NDArray[np.bool_], level: float
) -> Needed | None:
    """Return how many packets give the accuracy TARGET; None where it is not reached.

    ``correct`` has for each length the share of each run's observations that are told right. The accuracy is made monotone in
    the length, and interpolated linearly over its logarithm. A length that is the shortest tried is an upper bound. The
    interval is of runs drawn again, their rules as they are (percentile bootstrap).
    """
    packets = [each.packets for each in lengths]
    if None in packets:
        return None
    logs = [math.log(each) for each in packets if each is not None]
    at = _crossing(logs, [each.accuracy for each in lengths])
    if at is None:
        return None
    noise = np.random.default_rng(0)
    ones, others = np.flatnonzero(labels), np.flatnonzero(~labels)
    table = np.array(correct)
    ends = []
    for _ in range(DRAWS):
        one, other = noise.choice(ones, len(ones)), noise.choice(others, len(others))
        accuracy = (table[:, one].mean(axis=1) + table[:, other].mean(axis=1)) / 2
        crossing = _crossing(logs, accuracy.tolist())
        ends.append(math.inf if crossing is None else crossing)
    ends.sort()
    beyond = math.floor((1 - level) / 2 * DRAWS)
    low, high = (None if math.isinf(end) else math.exp(end) for end in (ends[beyond], ends[-1 - beyond]))
    known = [(log, math.log(each.seconds)) for log, each in zip(logs, lengths, strict=True) if each.seconds]
    starts, times = [log for log, _ in known], [time for _, time in known]
    seconds = math.exp(float(np.interp(at, starts, times))) if known and at >= starts[0] else None
    return Needed(math.exp(at), seconds, low, high)


def _crossing(logs: Sequence[float], accuracy: Sequence[float]) -> float | None:
    monotone = isotonic(accuracy)
    for at, value in enumerate(monotone):
        if value >= TARGET - 1e-12:
            if at == 0 or value == monotone[at - 1]:
                return logs[at]
            share = (TARGET - monotone[at - 1]) / (value - monotone[at - 1])
            return logs[at - 1] + share * (logs[at] - logs[at - 1])
    return None
