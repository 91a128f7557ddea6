"""Gaussian processes with Matern's kernel of smoothness 5/2 (Rasmussen and Williams 2006, Gaussian Processes for Machine
Learning, eq. 4.17), a length for each input, about a trend in unknown amounts, whose prior is flat (section 2.7).

Nothing that is not known is taken as known: what a process is asked for is averaged over its deviation and lengths, by their
posterior at the points of a scrambled Sobol sequence (importance sampling from the prior; deterministic).  What a group of
points left out would have been is exact for each of these points, by the inverse of the covariance (section 5.4.2), and their
weights without the group follow from the group's density.

Priors: as likely as not there is no process beside the trend (Mitchell and Beauchamp 1988, J. Am. Stat. Assoc. 83:1023); else
lengths are log-normal about half the range of an input, and the deviation is half-Cauchy, as Gelman (2006, Bayesian Analysis
1:515) proposes for variances of which little is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

POINTS = 256
LENGTH, SPREAD = 0.5, 1.0
"""Of the log-normal prior: the middle, in ranges of the input, and the deviation of its logarithm."""
DEVIATION = 0.15
"""The half-Cauchy prior's scale, in logarithms of the response: half of testbeds differ by less than 15 % of it."""
CONSTANT = 0.5
"""The prior probability that there is nothing beside the trend."""
MOST = 20.0
"""Times its scale, a deviation at most."""
MOST_NUMBERS = 400_000
"""Of covariances that are made at a time: what a processor's cache holds."""
NOTHING = 1e-12
"""Added to variances, so that a covariance can be inverted where points are as good as equal."""


def matern(one: Doubles, two: Doubles, lengths: Doubles) -> Doubles:
    """Correlations of points (n, inputs) with points (m, inputs); ``lengths`` (..., inputs) gives (..., n, m)."""
    apart = (one[:, None, :] - two[None, :, :]) ** 2
    square = 5.0 * np.tensordot(1.0 / lengths**2, apart, axes=([-1], [2]))
    distance = np.sqrt(square)
    square /= 3.0
    square += distance
    square += 1.0
    square *= np.exp(-distance, out=distance)
    return square


@dataclass(frozen=True, slots=True)
class Shapes:
    """Possible deviations and lengths, each with its weight."""

    deviations: Doubles
    """(shapes,)."""
    lengths: Doubles
    """(shapes, inputs), in ranges of the input."""
    weights: Doubles
    """(shapes,), of sum 1."""

    def likely(self, least: float = 1e-6) -> Shapes:
        """Without those that weigh as good as nothing."""
        kept = self.weights > least * self.weights.max()
        weights = self.weights[kept]
        return Shapes(self.deviations[kept], self.lengths[kept], weights / weights.sum())


def prior(inputs: int, deviation: float = DEVIATION) -> Shapes:
    """Draws from the prior, spread evenly by a scrambled Sobol sequence whose seed is fixed."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    with np.errstate(all="ignore"):
        draws = qmc.Sobol(inputs + 1, scramble=True, seed=20260101).random(POINTS)
    draws = np.clip(draws, 1e-9, 1 - 1e-9)
    deviations = np.minimum(deviation * np.tan(np.pi / 2 * draws[:, 0]), MOST * deviation)
    lengths = LENGTH * np.exp(SPREAD * ndtri(draws[:, 1:]))
    return Shapes(
        np.append(0.0, deviations),
        np.vstack([np.full((1, inputs), LENGTH), lengths]),
        np.append(CONSTANT, np.full(POINTS, (1.0 - CONSTANT) / POINTS)),
    )


@dataclass(frozen=True, slots=True)
class Normal:
    """Means and covariances of a normal distribution, for each of the shapes: (shapes, points) and (shapes, points, points)."""

    means: Doubles
    covariances: Doubles

    def mixed(self, weights: Doubles) -> tuple[Doubles, Doubles]:
        """Mean (points,) and covariance (points, points) over all shapes."""
        mean = weights @ self.means
        off = self.means - mean
        return mean, np.einsum("s,smn->mn", weights, self.covariances) + np.einsum("s,sm,sn->mn", weights, off, off)


@dataclass(frozen=True, slots=True)
class Process:
    """A process about a trend's unknown amounts, observed at points with a known covariance of errors."""

    inputs: Doubles
    values: Doubles
    basis: Doubles
    """(points, amounts)."""
    shapes: Shapes
    inverse: Doubles
    """(shapes, points, points): of the covariance of values."""
    amounts: Doubles
    """(shapes, amounts, points): takes values to the trend's amounts, by generalised least squares."""
    unsure: Doubles
    """(shapes, amounts, amounts): their covariance."""

    def at(self, inputs: Doubles, basis: Doubles, shared: Doubles | None = None, own: Doubles | None = None) -> Normal:
        """The process and its trend at points (m, inputs), where the basis is (m, amounts). ``shared`` (points, m) is the
        covariance of the values' errors with what is asked for beside the process, ``own`` (m, m) that of the latter."""
        square = self.shapes.deviations[:, None, None] ** 2
        across = square * matern(self.inputs, inputs, self.shapes.lengths)
        alone = square * matern(inputs, inputs, self.shapes.lengths)
        across = across if shared is None else across + shared
        alone = alone if own is None else alone + own
        amounts = self.amounts @ self.values
        gain = self.inverse @ across
        means = amounts @ basis.T + np.einsum("spm,sp->sm", gain, self.values - amounts @ self.basis.T)
        unknown = basis - gain.swapaxes(1, 2) @ self.basis
        covariances = alone - across.swapaxes(1, 2) @ gain + unknown @ self.unsure @ unknown.swapaxes(1, 2)
        return Normal(means, covariances)

    def without(self, group: NDArray[np.bool_]) -> tuple[Normal, Doubles]:
        """What the values of ``group``, errors and all, would be by all others, and the shapes' weights then."""
        contrasts = self.inverse[:, group] - (self.inverse[:, group] @ self.basis) @ self.amounts
        inside = contrasts[:, :, group]
        covariances = np.asarray(np.linalg.inv(inside), dtype=np.float64)
        off = np.einsum("sgh,sh->sg", covariances, contrasts @ self.values)
        _, logdet = np.linalg.slogdet(inside)
        density = 0.5 * logdet - 0.5 * np.einsum("sg,sgh,sh->s", off, inside, off)
        return Normal(self.values[group] - off, covariances), _shares(np.log(self.shapes.weights) - density)


def observed(inputs: Doubles, values: Doubles, basis: Doubles, errors: Doubles, shapes: Shapes) -> Process:
    """The process given ``values`` (points,) at ``inputs`` (points, inputs), whose errors have the covariance ``errors``, about
    a trend of ``basis`` (points, amounts): the shapes weighed by their restricted likelihood, those kept that matter."""
    logs = [_likelihood(inputs, values, basis, errors, part) for part in _parts(shapes, len(values))]
    weights = _shares(np.log(shapes.weights) + np.concatenate(logs))
    likely = Shapes(shapes.deviations, shapes.lengths, weights).likely()
    inverse = np.asarray(np.linalg.inv(_covariances(inputs, errors, likely)), dtype=np.float64)
    by_basis = inverse @ basis
    unsure = np.asarray(np.linalg.inv(basis.T @ by_basis), dtype=np.float64)
    return Process(inputs, values, basis, likely, inverse, unsure @ by_basis.swapaxes(1, 2), unsure)


def _parts(shapes: Shapes, points: int) -> Iterator[Shapes]:
    """Few enough at a time that their covariances fit."""
    size = max(1, MOST_NUMBERS // points**2)
    for start in range(0, len(shapes.weights), size):
        part = slice(start, start + size)
        yield Shapes(shapes.deviations[part], shapes.lengths[part], shapes.weights[part])


def _likelihood(inputs: Doubles, values: Doubles, basis: Doubles, errors: Doubles, shapes: Shapes) -> Doubles:
    """The logarithm of the restricted likelihood (Rasmussen and Williams, eq. 2.45), without its constant."""
    from scipy.linalg import cholesky, solve_triangular

    sides = np.column_stack([values, basis])
    logs = np.empty(len(shapes.weights))
    for number, covariance in enumerate(_covariances(inputs, errors, shapes)):
        factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        whitened = solve_triangular(factor, sides, lower=True, check_finite=False)
        of_values, of_basis = whitened[:, 0], whitened[:, 1:]
        precision = of_basis.T @ of_basis
        across = of_basis.T @ of_values
        rest = of_values @ of_values - across @ np.linalg.solve(precision, across)
        logs[number] = -np.log(np.diagonal(factor)).sum() - 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * rest
    return logs


def _covariances(inputs: Doubles, errors: Doubles, shapes: Shapes) -> Doubles:
    square = shapes.deviations[:, None, None] ** 2
    found: Doubles = square * matern(inputs, inputs, shapes.lengths) + errors + NOTHING * np.eye(len(inputs))
    return found


def _shares(logs: Doubles) -> Doubles:
    weights = np.exp(logs - logs.max())
    found: Doubles = weights / weights.sum()
    return found
