"""Choice of the next runs of the expensive testbed: those that reduce the uncertainty most for their cost.

A process' variance depends on where it is measured, not on the values there.  So each possible place is tried: how much the
variance over all places of interest would fall on average, a second (Cohn 1996, Neural Netw. 9:1071: active learning for a
process).  The best one is taken as measured, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from twinbed.statistics.calibration.calibration import Calibration

Doubles = NDArray[np.float64]


MOST = 0.9
"""The share of places inside a half-width: a mean would hide gaps."""


@dataclass(frozen=True, slots=True)
class Step:
    candidate: int
    seconds: float
    half_width: float
    """The half-width, in logarithms, that nine of ten places of interest stay below once this and all earlier steps are
    measured."""


@dataclass(frozen=True, slots=True)
class Course:
    now: float
    """The same half-width before any step."""
    steps: Sequence[Step]


def course(
    calibration: Calibration,
    candidates: Sequence[Doubles],
    of_interest: Doubles,
    *,
    seconds: Sequence[float],
    runs: int,
    steps: int,
    until: float = 0.0,
) -> Course:
    """Plan up to ``steps`` steps, or until the half-width is ``until``. Each step makes ``runs`` runs at all places of one of
    the ``candidates``, each (places, inputs), which lasts ``seconds``; a candidate is taken once."""
    ends = np.cumsum([0, *map(len, candidates)])
    covariance = _covariance(calibration, np.vstack([*candidates, of_interest]))
    own = int(ends[-1])
    error = calibration.expensive.noise.of_one_run / runs
    wide = float(ndtri((1 + calibration.level) / 2))
    left = dict(enumerate(np.arange(low, high) for low, high in pairwise(ends.tolist())))
    taken: list[Step] = []
    now = _half_width(covariance, own, wide)
    while left and len(taken) < steps and (taken[-1].half_width if taken else now) > until:
        gains = {at: _known(covariance, places, error) for at, places in left.items()}
        falls = {at: float(np.sum(gain[own:] ** 2)) / seconds[at] for at, gain in gains.items()}
        best = max(falls, key=falls.__getitem__)
        del left[best]
        covariance = covariance - gains[best] @ gains[best].T
        taken.append(Step(best, seconds[best], _half_width(covariance, own, wide)))
    return Course(now, taken)


def _known(covariance: Doubles, places: NDArray[np.intp], error: float) -> Doubles:
    """Return the root of what the covariance loses by measuring ``places``: (all places, these)."""
    inside = covariance[np.ix_(places, places)]
    factor = np.linalg.cholesky(inside + (error + 1e-12) * np.eye(len(inside)))
    gain: Doubles = np.linalg.solve(factor, covariance[places]).T
    return gain


def _half_width(covariance: Doubles, own: int, wide: float) -> float:
    return wide * float(np.quantile(np.sqrt(np.maximum(np.diagonal(covariance)[own:], 0.0)), MOST))


def _covariance(calibration: Calibration, places: Doubles) -> Doubles:
    """Return the covariance of the expensive testbed's mean at places, over all shapes. It leaves out the differences between
    the shapes' means, which runs determine."""
    mixed = calibration.expensive_at(places)
    mean_covariance: Doubles = np.einsum("s,smn->mn", mixed.weights, mixed.normal.covariances)
    return mean_covariance
