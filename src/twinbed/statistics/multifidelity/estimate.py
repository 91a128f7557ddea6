"""Estimate of the expensive model's mean, with an interval, from its own draws and those of cheaper models.

Regression in two phases, "double sampling" (Cochran 1977, Sampling Techniques, 3rd ed., section 12.6).  With n draws of the
expensive model y, all with the cheap models x, and more draws of these:

    mean = ybar + b^T (m - xbar)        b by least squares over the n draws; m the mean of x from all of its draws
    variance = s_e^2 (1 / n + d^T S^-1 d) + b^T V b,    d = m - xbar, S the sums of squares of x, V the variance of m

and Student's t.  Given x the first part is exact for normal residuals, with n - K - 1 degrees of freedom, K the number of cheap
models. It contains the error of a slope from few draws, which 1.96 with an estimated correlation leaves out.  The second part
has the degrees of freedom of its own relative variance: 2 / (N - 1) from V and 4 (V b)^T Cov(b) (V b) / (b^T V b)^2 from the
slopes.  The sum has Satterthwaite's (1946).  If x were not all run with the same draws, m is the maximum likelihood estimate of
normal x with values missing (EM; Little and Rubin 2002, section 11.2). V is that of the best linear unbiased estimate
(``allocation``). Cheap models that share draws with x alone help too.

If some draws of the expensive model lack a cheap one, the mean is the best linear unbiased estimate with estimated covariances.
Its variance is multiplied by the cost of estimating K weights, (n - 2) / (n - K - 2) (Lavenberg and Welch 1981, Management
Science 27:322).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.multifidelity.allocation import Group, Matrix

LEAST_SHARED = 5
"""The fewest draws shared by the expensive model and a cheap one; with fewer a slope is a guess."""
EM_STEPS = 2000
EM_PRECISION = 1e-7


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a mean."""

    value: float
    standard_error: float
    df: float
    level: float
    models: tuple[int, ...]
    """Cheap models that it uses; empty for the expensive model's draws alone."""
    draws: int
    """The expensive model's draws."""

    @property
    def half_width(self) -> float:
        return float(stdtrit(self.df, (1 + self.level) / 2)) * self.standard_error

    @property
    def interval(self) -> Bounds:
        return Bounds(self.value - self.half_width, self.value + self.half_width, self.level)


def plain(values: Matrix, level: float) -> Estimate:
    """Estimate from the expensive model's draws alone, by Student's t. Raises ValueError for fewer than 2 draws. ``values`` has
    shape (draws, models), NaN where a model was not run."""
    y = values[~np.isnan(values[:, 0]), 0]
    if len(y) < 2:
        raise ValueError(f"{len(y)} draws of the expensive model, expected at least 2")
    return Estimate(float(y.mean()), float(y.std(ddof=1)) / math.sqrt(len(y)), len(y) - 1, level, (), len(y))


def shared(values: Matrix, model: int) -> int:
    """Count the draws that both the expensive model and a cheap one ran."""
    return int(np.sum(~np.isnan(values[:, 0]) & ~np.isnan(values[:, model])))


def usable(values: Matrix) -> list[int]:
    """Return the cheap models that share enough draws and vary in them."""
    models = []
    for model in range(1, values.shape[1]):
        both = ~np.isnan(values[:, 0]) & ~np.isnan(values[:, model])
        if both.sum() >= LEAST_SHARED and np.ptp(values[both, model]) > 0:
            models.append(model)
    return models


def helpers(values: Matrix, models: Sequence[int]) -> list[int]:
    """Return the cheap models that share draws with one of ``models``, and so determine its mean better."""
    known = ~np.isnan(values)
    others = [model for model in range(1, values.shape[1]) if model not in models]
    return [other for other in others if any((known[:, other] & known[:, model]).sum() >= LEAST_SHARED for model in models)]


def mixed(values: Matrix, models: Sequence[int], level: float, helping: Sequence[int] = ()) -> Estimate:
    """Estimate with these cheap models, which share draws with the expensive one; ``helping`` ones share draws with these.
    ``values`` as in ``plain``. Raises ValueError where there are too few draws for so many models, or models follow from each
    other."""
    used = values[:, [0, *models, *helping]]
    expensive = used[~np.isnan(used[:, 0]), : len(models) + 1]
    k = len(models)
    complete = not np.isnan(expensive).any()
    n = len(expensive) if complete else int((~np.isnan(expensive[:, 1:])).any(axis=1).sum())
    if n < LEAST_SHARED + k - 1:
        raise ValueError(f"{n} shared draws for {k} cheap models")
    names = (*models, *helping)
    return _two_phase(used, k, names, level) if complete else _linear(used, names, n, level)


def _two_phase(used: Matrix, k: int, models: tuple[int, ...], level: float) -> Estimate:
    """Estimate by regression in two phases: the first ``k`` cheap models explain the expensive one."""
    expensive = used[~np.isnan(used[:, 0])]
    y, x = expensive[:, 0], expensive[:, 1 : k + 1]
    n = len(y)
    centred = x - x.mean(axis=0)
    squares = centred.T @ centred
    if np.linalg.matrix_rank(centred) < k:
        raise ValueError("the cheap models follow from each other")
    slopes = np.linalg.solve(squares, centred.T @ (y - y.mean()))
    residuals = y - y.mean() - centred @ slopes
    residual_variance = float(residuals @ residuals) / (n - k - 1)
    means, errors = _means(used[:, 1:])
    means, errors = means[:k], errors[:k, :k]
    d = means - x.mean(axis=0)
    first = residual_variance * (1 / n + float(d @ np.linalg.solve(squares, d)))
    second = float(slopes @ errors @ slopes)
    # The second part's variance over 2: as its square over its degrees of freedom.
    turned = errors @ slopes
    least = int((~np.isnan(used[:, 1 : k + 1])).sum(axis=0).min())
    spread = second**2 / (least - 1) + 2 * residual_variance * float(turned @ np.linalg.solve(squares, turned))
    total = first + second
    df = total**2 / (first**2 / (n - k - 1) + spread) if total else n - k - 1
    return Estimate(float(y.mean() + slopes @ d), math.sqrt(total), df, level, models, n)


def _means(x: Matrix) -> tuple[Matrix, Matrix]:
    """Return the means of the cheap models from all of their draws, and the covariance of these means."""
    known = ~np.isnan(x)
    rows = x[known.any(axis=1)]
    if known.any(axis=1).sum() == known.all(axis=1).sum():
        covariance = np.atleast_2d(np.cov(rows, rowvar=False)).astype(np.float64)
        return rows.mean(axis=0), covariance / len(rows)
    means, covariance = em(rows)
    return means, np.asarray(np.linalg.inv(information(covariance, parts(rows))), dtype=np.float64)


def _linear(used: Matrix, models: tuple[int, ...], n: int, level: float) -> Estimate:
    rows = used[~np.isnan(used).all(axis=1)]
    means, covariance = em(rows)
    k = len(models)
    # EM divides by n, as maximum likelihood does.
    unbiased = covariance * n / (n - k - 1)
    variance = float(np.linalg.inv(information(unbiased, parts(rows)))[0, 0]) * (n - 2) / max(n - k - 2, 1)
    return Estimate(float(means[0]), math.sqrt(variance), n - k - 1, level, models, int((~np.isnan(used[:, 0])).sum()))


Parts = Sequence[tuple[Group, Matrix]]
"""Models that ran the same draws, and their values, with shape (draws, models of the group)."""


def parts(rows: Matrix) -> Parts:
    """Group draws by the models that ran them."""
    known = ~np.isnan(rows)
    by_group = []
    for pattern in np.unique(known, axis=0):
        group = tuple(int(column) for column in np.flatnonzero(pattern))
        by_group.append((group, rows[(known == pattern).all(axis=1)][:, group]))
    return by_group


def information(covariance: Matrix, groups: Parts) -> Matrix:
    """Return the information on the means: its inverse is the covariance of their best linear unbiased estimates."""
    total = np.zeros_like(covariance)
    for group, values in groups:
        total[np.ix_(group, group)] += len(values) * np.linalg.inv(covariance[np.ix_(group, group)])
    return total


def blue(rows: Matrix, covariance: Matrix) -> Matrix:
    """Return the best linear unbiased estimates of all means for known covariances; ``rows`` as ``values`` in ``plain``."""
    groups = parts(rows)
    total = np.zeros(len(covariance))
    for group, values in groups:
        total[list(group)] += np.linalg.solve(covariance[np.ix_(group, group)], values.sum(axis=0))
    return np.asarray(np.linalg.solve(information(covariance, groups), total))


def em(rows: Matrix) -> tuple[Matrix, Matrix]:
    """Estimate means and covariances of normal values by maximum likelihood, with values missing (NaN). Raises ValueError if a
    model does not vary, or the estimate does not settle."""
    origin, scale = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
    if not np.all(scale > 0):
        raise ValueError("a model does not vary")
    moments = Moments.of(parts((rows - origin) / scale), rows.shape[1])
    at = np.vstack([np.zeros(rows.shape[1]), np.eye(rows.shape[1])])
    for _ in range(EM_STEPS):
        first = _em_step(moments, at)
        second = _em_step(moments, first)
        step, bend = first - at, second - 2 * first + at
        if np.abs(step).max() < EM_PRECISION:
            return np.asarray(second[0] * scale + origin), np.asarray(second[1:] * np.outer(scale, scale))
        at = _leap(at, step, bend, second)
    raise ValueError("the covariances do not settle: too few draws are shared")


def _leap(at: Matrix, step: Matrix, bend: Matrix, two: Matrix) -> Matrix:
    """Extrapolate the steps of EM, no farther than covariances stay positive definite. SQUAREM, scheme S3: Varadhan and Roland
    2008, Scand. J. Stat. 35:335."""
    length = float(np.linalg.norm(bend))
    alpha = -float(np.linalg.norm(step)) / length if length else -1.0
    if alpha >= -1:
        return two
    far = np.asarray(at - 2 * alpha * step + alpha**2 * bend)
    return far if np.linalg.eigvalsh(far[1:])[0] > np.linalg.eigvalsh(two[1:])[0] / 10 else two


@dataclass(frozen=True, slots=True)
class Moments:
    """The sums of the groups' values that EM needs: one step takes the same time whatever the number of draws.

    The first axis is the groups'. A 1 marks the pairs of models that are meant, a 0 all others.
    """

    draws: Matrix
    """(groups, 1, 1)."""
    sums: Matrix
    """(groups, 1 + models, 1 + models): of products of a 1 and the values; 0 where a model is not of the group."""
    lacking: Matrix
    """(groups, models): 1 where a model is not of the group, else 0."""
    inside: Matrix
    """(groups, models, models): both are of the group."""
    across: Matrix
    """(groups, models, models): the first is of the group, the second is not."""
    outside: Matrix
    """(groups, models, models): neither is of the group."""
    own_there: Matrix
    """(groups, models, models): a model of the group with itself."""
    own_lacking: Matrix
    """(groups, models, models): a model that is not of the group with itself."""

    @classmethod
    def of(cls, groups: Parts, models: int) -> Moments:
        sums, present = np.zeros((len(groups), 1 + models, 1 + models)), np.zeros((len(groups), models))
        for number, (group, values) in enumerate(groups):
            extended = np.column_stack([np.ones(len(values)), values])
            places = [0, *(1 + model for model in group)]
            sums[number][np.ix_(places, places)] = extended.T @ extended
            present[number, group] = 1
        lacking, own = 1 - present, np.eye(models)
        return cls(
            sums[:, :1, :1],
            sums,
            lacking,
            present[:, :, None] * present[:, None, :],
            present[:, :, None] * lacking[:, None, :],
            lacking[:, :, None] * lacking[:, None, :],
            own * present[:, None, :],
            own * lacking[:, None, :],
        )


def _em_step(moments: Moments, at: Matrix) -> Matrix:
    """Return the next means (first row) and covariances (the others). Missing values take their expectation, given the others,
    and their variance around it is added."""
    means, covariance = at[0], at[1:]
    across = covariance * moments.across
    weights = np.linalg.solve(covariance * moments.inside + moments.own_lacking, across)
    # Takes a 1 and the values that are there to a 1 and all values.
    filled = np.zeros_like(moments.sums)
    filled[:, 0, 0] = 1
    filled[:, 0, 1:] = moments.lacking * means - means @ weights
    filled[:, 1:, 1:] = weights + moments.own_there
    rest = covariance * moments.outside - across.swapaxes(1, 2) @ weights
    sums = (filled.swapaxes(1, 2) @ moments.sums @ filled).sum(axis=0)
    sums[1:, 1:] += (moments.draws * rest).sum(axis=0)
    new = sums[0, 1:] / sums[0, 0]
    return np.vstack([new, sums[1:, 1:] / sums[0, 0] - new[:, None] * new])
