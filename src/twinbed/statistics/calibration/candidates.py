"""The two ways to predict an expensive testbed, and how much each counts.

One is a process about the cheap testbed's mean, the other a process of the expensive runs alone.  Leaving a group out shows how
far off each of them is, in a gap twice as wide as the one that a prediction is made in.  The error of a smooth curve between
two places goes with the square of the gap.  So the expensive runs alone are taken to be ``NEARER`` times as good as they look:
the cheap testbed has to be better than that to count for more than half.  Predictions are mixed by the inverse of mean squares
(Bates and Granger 1969, Oper. Res. Q. 20:451).  How far both lie apart at a place is part of the interval there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.calibration.cells import Cells
from twinbed.statistics.calibration.intervals import in_hull
from twinbed.statistics.calibration.process import Normal, Points, Process
from twinbed.statistics.calibration.trend import Trend

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEARER = 4.0
"""How much better a smooth curve is between measured levels than when the level between them is left out."""
APART = 2.0
"""The distance between both candidates counts as so many deviations: an interval of 95 % reaches from one to the other."""


@dataclass(frozen=True, slots=True)
class Cheap:
    """The mean of the cheap testbed."""

    trend: Trend
    process: Process

    def at(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        """Return the mean (places,) and its covariance over all shapes."""
        base, basis = self.trend.at(inputs)
        posterior = self.process.at(Points(inputs, basis, np.zeros(len(inputs))))
        mean, covariance = posterior.mixed(self.process.shapes.weights)
        return mean + base, covariance


@dataclass(frozen=True, slots=True)
class Mixture:
    """Normal distributions (shapes, places), each with its weight."""

    normal: Normal
    weights: Doubles

    @property
    def variances(self) -> Doubles:
        variances: Doubles = np.diagonal(self.normal.covariances, axis1=1, axis2=2)
        return variances

    def mixed(self) -> tuple[Doubles, Doubles]:
        return self.normal.mixed(self.weights)


def between(with_cheap: Mixture, alone: Mixture, share: float) -> Mixture:
    """Return ``with_cheap`` moved towards ``alone``, so that it counts for ``share``. The distance of both counts as ``APART``
    deviations more; the less so, the more ``with_cheap`` counts for beyond a half."""
    distance = alone.mixed()[0] - with_cheap.mixed()[0]
    unknown = np.diag(min(1.0, 2.0 * (1.0 - share)) * (distance / APART) ** 2)
    moved = Normal(with_cheap.normal.means + (1.0 - share) * distance, with_cheap.normal.covariances + unknown)
    return Mixture(moved, with_cheap.weights)


@dataclass(frozen=True)
class Candidate:
    """A process of the expensive testbed: about the cheap testbed's mean, or, where ``cheap`` is None, about a constant."""

    expensive: Cells
    groups: NDArray[np.intp]
    process: Process
    cheap: Cheap | None

    def at(self, inputs: Doubles) -> Mixture:
        """Return the expensive testbed's mean at ``inputs`` (places, inputs)."""
        own = len(self.expensive)
        mean, covariance = self.base(np.vstack([self.expensive.inputs, inputs]))
        asked = beside(inputs, mean[own:], float(mean[:own].mean()))
        posterior = self.process.at(asked, covariance[:own, own:], covariance[own:, own:])
        return Mixture(Normal(posterior.means + mean[own:], posterior.covariances), self.process.shapes.weights)

    def base(self, inputs: Doubles) -> tuple[Doubles, Doubles]:
        """Return the base of the process, and the base's covariance."""
        if self.cheap is None:
            return np.zeros(len(inputs)), np.zeros((len(inputs), len(inputs)))
        return self.cheap.at(inputs)

    @cached_property
    def without(self) -> Sequence[Mixture]:
        """Predict each group's cells, with errors, from all other groups; nothing for a single group."""
        mean, _ = self.base(self.expensive.inputs)
        mixtures = []
        for members in each_group(self.groups):
            if np.all(members):
                return ()
            normal, weights = self.process.without(members)
            mixtures.append(Mixture(Normal(normal.means + mean[members], normal.covariances), weights))
        return mixtures

    @cached_property
    def squares(self) -> Sequence[Doubles]:
        """Return the squared errors at each group's cells inside the range of the others, when left out."""
        off = [
            self.expensive.means[members] - left.mixed()[0]
            for members, left in zip(each_group(self.groups), self.without, strict=False)
        ]
        return [errors[kept] ** 2 for errors, kept in zip(off, inside(self.expensive, self.groups), strict=False)]

    @property
    def error(self) -> float | None:
        """Return the root mean square of these; None without any."""
        return _root(self.squares)


def beside(inputs: Doubles, cheap: Doubles, centre: float) -> Points:
    """Return points about a constant, which rise with the cheap testbed's excess over ``centre``."""
    return Points(inputs, np.ones((len(inputs), 1)), cheap - centre)


def each_group(groups: NDArray[np.intp]) -> Sequence[Flags]:
    """Return the cells of each group."""
    return [groups == group for group in np.unique(groups)]


def inside(expensive: Cells, groups: NDArray[np.intp]) -> Sequence[Flags]:
    """Return for each group's cells whether they lie in the range of the others."""
    return [
        in_hull(expensive.inputs[~members], expensive.inputs[members]) for members in each_group(groups) if not np.all(members)
    ]


def share_of_cheap(mixed: Sequence[Doubles], alone: Sequence[Doubles]) -> float:
    """Return the share of the candidate with the cheap testbed, by the squared errors of both candidates in each group. It is 0
    if that candidate is no better, 1 if nothing was left out."""
    mixed_root, alone_root = _root(mixed), _root(alone)
    if mixed_root is None or alone_root is None:
        return 1.0
    if mixed_root > alone_root:
        return 0.0
    with_cheap, by_itself = mixed_root**2, (alone_root / NEARER) ** 2
    return by_itself / (by_itself + with_cheap) if with_cheap + by_itself > 0 else 1.0


def _root(squares: Sequence[Doubles]) -> float | None:
    every = np.concatenate(squares) if len(squares) else np.empty(0)
    return float(np.sqrt(every.mean())) if len(every) else None
