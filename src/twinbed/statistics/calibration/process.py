"""Gaussian processes with Matern's kernels, a length for each input, about a trend in unknown amounts, whose prior is flat.

The kernels have smoothness 1/2, 3/2 and 5/2 (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, eq. 4.17 and
section 2.7).

No unknown is fixed: predictions are averaged over the process' deviation, lengths, smoothness and slope, by their posterior at
the points of a scrambled Sobol sequence (importance sampling from the prior; deterministic).  Predictions of a group of points
left out are exact for each of these points, by the inverse of the covariance (section 5.4.2); their weights without the group
follow from the group's density.

Priors: as likely as not there is only the trend and no process (Mitchell and Beauchamp 1988, J. Am. Stat. Assoc. 83:1023).
Otherwise lengths are log-normal about half the range of an input. The deviation is half-Cauchy, as Gelman (2006, Bayesian
Analysis 1:515) proposes for little-known variances, and each smoothness is as likely: few points cannot distinguish a step from
a slope. A process may rise with a known curve besides, by a normal slope about 0 whose deviation is 0 as likely as not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]

POINTS = 256
LENGTH, SPREAD = 0.5, 1.0
"""The log-normal prior: its middle, in ranges of the input, and the deviation of its logarithm."""
DEVIATION = 0.15
"""The half-Cauchy prior's scale, in logarithms of the response: half of testbeds differ by less than 15 % of it."""
CONSTANT = 0.5
"""The prior probability that there is nothing but the trend."""
SMOOTHNESS = (0.5, 1.5, 2.5)
HEARD = 0.5
"""The power of a smoothness' likelihood (a fractional likelihood; O'Hagan 1995, J. R. Stat. Soc. B 57:99). A step between two
points leaves no trace at them, so that values favour smooth curves more than they should."""
SLOPE = 0.5
"""The half-Cauchy prior's scale of a slope's deviation, and its deviation if there is nothing else but the trend."""
MOST = 20.0
"""A deviation is at most so many times its scale."""
MOST_NUMBERS = 400_000
"""Numbers in the covariances that are made at a time, which fit a processor's cache."""
LEAST = 1e-6
"""Shapes that weigh less than this share of the largest weight are left out."""
NOTHING = 1e-12
"""Added to variances, so that a covariance can be inverted where points are as good as equal."""


def matern(points: Doubles, others: Doubles, lengths: Doubles, smoothness: Doubles) -> Doubles:
    """Return correlations (shapes, n, m) of points (n, inputs) with points (m, inputs). ``lengths`` are (shapes, inputs),
    ``smoothness`` (shapes,), each of SMOOTHNESS."""
    apart = (points[:, None, :] - others[None, :, :]) ** 2
    square = np.tensordot(1.0 / lengths**2, apart, axes=([-1], [2])) * (2.0 * smoothness[:, None, None])
    distance = np.sqrt(square)
    correlation: Doubles = np.exp(-distance)
    for order, polynomial in ((1.5, 1.0 + distance), (2.5, 1.0 + distance + square / 3.0)):
        own = smoothness == order
        correlation[own] *= polynomial[own]
    return correlation


@dataclass(frozen=True, slots=True)
class Shapes:
    """Possible deviations, lengths, smoothnesses and slopes, each with its weight."""

    deviations: Doubles
    """(shapes,)."""
    lengths: Doubles
    """(shapes, inputs), in ranges of the input."""
    weights: Doubles
    """(shapes,), of sum 1."""
    smoothness: Doubles
    """(shapes,), each of SMOOTHNESS."""
    slopes: Doubles
    """(shapes,): the deviation of the slope by the known curve."""

    def covariance(self, points: Points, others: Points) -> Doubles:
        """Return the covariance of the process at points (n) and points (m): (shapes, n, m)."""
        square = self.deviations[:, None, None] ** 2
        covariances = square * matern(points.inputs, others.inputs, self.lengths, self.smoothness)
        if self.slopes.any():
            covariances += self.slopes[:, None, None] ** 2 * (points.curve[:, None] * others.curve[None, :])
        return covariances

    def part(self, of: slice[int, int, None] | Flags) -> Shapes:
        return Shapes(self.deviations[of], self.lengths[of], self.weights[of], self.smoothness[of], self.slopes[of])


@dataclass(frozen=True, slots=True)
class Points:
    inputs: Doubles
    """(points, inputs)."""
    basis: Doubles
    """(points, amounts), of the trend."""
    curve: Doubles
    """(points,): the known curve that the process may rise with."""


def prior(inputs: int, deviation: float = DEVIATION, *, has_slope: bool = False) -> Shapes:
    """Draw from the prior, spread evenly by a scrambled Sobol sequence whose seed is fixed."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    with np.errstate(all="ignore"):
        draws = qmc.Sobol(inputs + 3, scramble=True, seed=20260101).random(POINTS)
    draws = np.clip(draws, 1e-9, 1 - 1e-9)
    deviations = np.minimum(deviation * np.tan(np.pi / 2 * draws[:, 0]), MOST * deviation)
    smoothness = np.array(SMOOTHNESS)[(draws[:, 1] * len(SMOOTHNESS)).astype(int)]
    slopes = np.minimum(SLOPE * np.tan(np.pi / 2 * np.maximum(2 * draws[:, 2] - 1, 0.0)), MOST * SLOPE) * has_slope
    lengths = LENGTH * np.exp(SPREAD * ndtri(draws[:, 3:]))
    # Nothing beside the trend, with and without a slope, is as likely of each smoothness.
    still = np.repeat(SMOOTHNESS, 2 if has_slope else 1)
    own = len(still)
    return Shapes(
        np.append(np.zeros(own), deviations),
        np.vstack([np.full((own, inputs), LENGTH), lengths]),
        np.append(np.full(own, CONSTANT / own), np.full(POINTS, (1.0 - CONSTANT) / POINTS)),
        np.append(still, smoothness),
        np.append(np.tile([0.0, SLOPE], own // 2) if has_slope else np.zeros(own), slopes),
    )


@dataclass(frozen=True, slots=True)
class Normal:
    """Means and covariances of a normal distribution, for each of the shapes: (shapes, points) and (shapes, points, points)."""

    means: Doubles
    covariances: Doubles

    def mixed(self, weights: Doubles) -> tuple[Doubles, Doubles]:
        """Return mean (points,) and covariance (points, points) over all shapes."""
        mean = weights @ self.means
        off = self.means - mean
        return mean, np.einsum("s,smn->mn", weights, self.covariances) + np.einsum("s,sm,sn->mn", weights, off, off)


@dataclass(frozen=True, slots=True)
class Process:
    """A process about a trend's unknown amounts, observed at points with a known covariance of errors."""

    points: Points
    values: Doubles
    shapes: Shapes
    logs: Doubles
    """(shapes,): the sum of the logarithms of prior and likelihood."""
    inverse: Doubles
    """(shapes, points, points): of the covariance of values."""
    amounts: Doubles
    """(shapes, amounts, points): takes values to the trend's amounts, by generalised least squares."""
    unsure: Doubles
    """(shapes, amounts, amounts): their covariance."""

    def at(self, asked: Points, shared: Doubles | None = None, own: Doubles | None = None) -> Normal:
        """Predict the process and its trend at points (m). ``shared`` (points, m) is the covariance of the values' errors with
        other parts of the prediction, ``own`` (m, m) the covariance of these parts."""
        basis = asked.basis
        across = self.shapes.covariance(self.points, asked)
        alone = self.shapes.covariance(asked, asked)
        across = across if shared is None else across + shared
        alone = alone if own is None else alone + own
        amounts = self.amounts @ self.values
        gain = self.inverse @ across
        means = amounts @ basis.T + np.einsum("spm,sp->sm", gain, self.values - amounts @ self.points.basis.T)
        unknown = basis - gain.swapaxes(1, 2) @ self.points.basis
        covariances = alone - across.swapaxes(1, 2) @ gain + unknown @ self.unsure @ unknown.swapaxes(1, 2)
        return Normal(means, covariances)

    @property
    def slope(self) -> float:
        """Return the expected slope by the known curve, over all shapes."""
        left = self.values - self.amounts @ self.values @ self.points.basis.T
        of_curve = np.einsum("p,spq,sq->s", self.points.curve, self.inverse, left)
        return float(self.shapes.weights @ (self.shapes.slopes**2 * of_curve))

    def without(self, group: NDArray[np.bool_]) -> tuple[Normal, Doubles]:
        """Predict the values of ``group``, with errors, from all others; also return the shapes' weights without the group."""
        contrasts = self.inverse[:, group] - (self.inverse[:, group] @ self.points.basis) @ self.amounts
        inside = contrasts[:, :, group]
        covariances = np.asarray(np.linalg.inv(inside), dtype=np.float64)
        off = np.einsum("sgh,sh->sg", covariances, contrasts @ self.values)
        _, logdet = np.linalg.slogdet(inside)
        density = 0.5 * logdet - 0.5 * np.einsum("sg,sgh,sh->s", off, inside, off)
        return Normal(self.values[group] - off, covariances), _posterior(self.logs - density, self.shapes.smoothness)


def observed(points: Points, values: Doubles, errors: Doubles, shapes: Shapes) -> Process:
    """Return the process given ``values`` (points,), whose errors have the covariance ``errors``. Shapes are weighed by their
    restricted likelihood; those with negligible weight are left out."""
    basis = points.basis
    logs = [_likelihood(points, values, errors, part) for part in _parts(shapes, len(values))]
    both = np.log(shapes.weights) + np.concatenate(logs)
    weights = _posterior(both, shapes.smoothness)
    kept = weights > LEAST * weights.max()
    likely = replace(shapes.part(kept), weights=weights[kept] / weights[kept].sum())
    inverse = np.asarray(np.linalg.inv(_covariances(points, errors, likely)), dtype=np.float64)
    by_basis = inverse @ basis
    unsure = np.asarray(np.linalg.inv(basis.T @ by_basis), dtype=np.float64)
    return Process(points, values, likely, both[kept], inverse, unsure @ by_basis.swapaxes(1, 2), unsure)


def _parts(shapes: Shapes, points: int) -> Iterator[Shapes]:
    """Split shapes into parts whose covariances fit."""
    size = max(1, MOST_NUMBERS // points**2)
    for start in range(0, len(shapes.weights), size):
        yield shapes.part(slice(start, start + size))


def _likelihood(points: Points, values: Doubles, errors: Doubles, shapes: Shapes) -> Doubles:
    """Return the logarithm of the restricted likelihood (Rasmussen and Williams, eq. 2.45), without its constant."""
    from scipy.linalg import cholesky, solve_triangular

    sides = np.column_stack([values, points.basis])
    logs = np.empty(len(shapes.weights))
    for number, covariance in enumerate(_covariances(points, errors, shapes)):
        factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        whitened = solve_triangular(factor, sides, lower=True, check_finite=False)
        of_values, of_basis = whitened[:, 0], whitened[:, 1:]
        precision = of_basis.T @ of_basis
        across = of_basis.T @ of_values
        rest = of_values @ of_values - across @ np.linalg.solve(precision, across)
        logs[number] = -np.log(np.diagonal(factor)).sum() - 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * rest
    return logs


def _covariances(points: Points, errors: Doubles, shapes: Shapes) -> Doubles:
    covariances: Doubles = shapes.covariance(points, points) + errors + NOTHING * np.eye(len(points.inputs))
    return covariances


def _posterior(logs: Doubles, smoothness: Doubles) -> Doubles:
    """Return the weights of shapes from the logarithms of prior and likelihood; evidence on smoothness has the power HEARD."""
    weights: Doubles = np.empty_like(logs)
    kinds = [smoothness == value for value in np.unique(smoothness)]
    best = np.array([logs[kind].max() for kind in kinds])
    own = [np.exp(logs[kind] - most) for kind, most in zip(kinds, best, strict=True)]
    evidence = HEARD * (best + np.log([of_kind.sum() for of_kind in own]))
    shares = np.exp(evidence - evidence.max())
    for kind, of_kind, share in zip(kinds, own, shares / shares.sum(), strict=True):
        weights[kind] = of_kind / of_kind.sum() * share
    return weights
