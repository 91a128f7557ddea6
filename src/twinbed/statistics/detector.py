"""A detector of one kind of runs, from other metrics of the runs: a logistic regression and the threshold of its score.

Columns are divided by their spread among runs of one N, so that values outside that spread count, whatever their unit. The
ridge, and the choice between metrics and their logarithms, are those with the largest area under the ROC curve, for replicates
left out. The area compares the hardest runs (to be detected first) with those of the other kind.

It alarms above a threshold that at most ``false_alarms`` of runs of the other kind exceed, whatever their distribution. The
threshold is the conformal quantile of such runs' scores, each from a model that has not seen its replicate (Vovk, Gammerman and
Shafer 2005).  Fewer than 1/false_alarms - 1 runs have no such quantile: then the threshold is Student's prediction bound for
one more run, or the greatest score if that is more. The models that score these runs have seen one replicate less, and the
ridge is chosen on the same runs; docs/coverage.md measures the effect.

Logistic regression with a ridge: the chance that a run is of one kind, from other metrics of the run.

Columns are centred by the mean of the rows fitted and divided by their standard deviation, or by a given spread: a difference
of many such spreads then needs only a small coefficient. A column that does not vary has no effect.  The penalty is half of
``ridge`` times the sum of squared coefficients (not of the intercept), which keeps them finite where a column separates the
kinds wholly (Le Cessie and van Houwelingen 1992, Appl. Stat. 41:191).  The fit is by Newton's method with halved steps; the
penalised likelihood has one maximum.

How well a score distinguishes two kinds of runs: the ROC curve, and the area under it with its interval.

The area is the chance that a positive scores above a negative, ties counting half.  Its variance is DeLong's (DeLong, DeLong
and Clarke-Pearson 1988, Biometrics 44:837); the interval is made on the logit of the area, so that it stays inside 0 to 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, stdtrit

from twinbed.statistics.bounds import Bounds

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
RIDGES = (10.0, 1.0, 0.1, 0.01)
"""Ridges to try, per fitted run; of equally good ones the first is taken."""
LEAST_SPREAD = 1e-3
"""A share of the standard deviation over all runs: a metric that hardly varies at one N is not taken as more exact."""


@dataclass(frozen=True, slots=True)
class Detector:
    model: Logistic
    floor: Floats
    """The least value trained on of a metric taken as a logarithm, which stands for any below it; nan of an untransformed
    metric."""
    threshold: float

    def scores(self, machine: Floats) -> Floats:
        """Return the log odds of runs: a row a run, a column a metric."""
        return self.model.scores(_taken(machine, self.floor))

    def alarms(self, machine: Floats) -> Bools:
        alarms: Bools = self.scores(machine) > self.threshold
        return alarms


@dataclass(frozen=True, slots=True)
class Training:
    """One entry a run."""

    machine: Floats
    yes: Bools
    """Runs to alarm in."""
    no: Bools
    """Runs not to alarm in; runs that are neither are not trained on."""
    hardest: Bools
    """Runs of ``yes`` to detect first."""
    n: NDArray[np.intp]
    replicate: NDArray[np.intp]


def train(runs: Training, false_alarms: float) -> Detector:
    """Train a detector. Raises ValueError if all runs of one kind are of one replicate, or fewer than two are not to alarm
    in."""
    bare = np.full(runs.machine.shape[1], math.nan)
    least = runs.machine.min(axis=0)
    floors = [bare, np.where(least > 0, least, math.nan)] if (least > 0).any() else [bare]
    best, chosen = -1.0, None
    for floor, ridge in itertools.product(floors, RIDGES):
        rows = _taken(runs.machine, floor)
        spread = _spread(rows, runs.n)
        scores = _left_out(runs, rows, ridge, spread)
        scored = ~np.isnan(scores)
        if not (scored & runs.hardest).any() or (scored & runs.no).sum() < 2:
            continue
        separation = area(scores[scored & runs.hardest].tolist(), scores[scored & runs.no].tolist()).value
        if separation > best:
            best, chosen = separation, (floor, rows, ridge, spread, np.sort(scores[scored & runs.no]))
    if chosen is None:
        raise ValueError(
            "too few training runs of one kind, or all of one replicate: no run can be set aside for the threshold"
        )
    floor, rows, ridge, spread, kept = chosen
    return Detector(_fitted(runs, rows, runs.yes | runs.no, ridge, spread), floor, _threshold(kept, false_alarms))


def _taken(machine: Floats, floor: Floats) -> Floats:
    logged = ~np.isnan(floor)
    metrics = machine.astype(np.float64, copy=True)
    metrics[:, logged] = np.log(np.maximum(machine[:, logged], floor[logged]))
    return metrics


def _spread(rows: Floats, n: NDArray[np.intp]) -> Floats:
    """Return the pooled standard deviation among runs of one N."""
    squares, freedom = np.zeros(rows.shape[1]), 0
    for count in np.unique(n):
        of = rows[n == count]
        squares, freedom = squares + ((of - of.mean(axis=0)) ** 2).sum(axis=0), freedom + len(of) - 1
    spread: Floats = np.maximum(np.sqrt(squares / max(freedom, 1)), LEAST_SPREAD * rows.std(axis=0, ddof=1))
    return spread


def _left_out(runs: Training, rows: Floats, ridge: float, spread: Floats) -> Floats:
    """Return each run's score by a model that has not seen its replicate; nan if no such model exists."""
    scores = np.full(len(rows), math.nan)
    for here, model in _models(runs, rows, ridge, spread):
        scores[here] = model.scores(rows[here])
    return scores


def _models(runs: Training, rows: Floats, ridge: float, spread: Floats) -> Iterator[tuple[Bools, Logistic]]:
    for replicate in np.unique(runs.replicate):
        here = runs.replicate == replicate
        if (runs.yes & ~here).any() and (runs.no & ~here).any():
            yield here, _fitted(runs, rows, (runs.yes | runs.no) & ~here, ridge, spread)


def _fitted(runs: Training, rows: Floats, of: Bools, ridge: float, spread: Floats) -> Logistic:
    return logistic(rows[of], runs.yes[of], ridge * float(of.sum()), spread)


def _threshold(scores: Floats, false_alarms: float) -> float:
    """Return the threshold from at least two scores, sorted."""
    count = len(scores)
    rank = math.ceil((count + 1) * (1 - false_alarms))
    if rank <= count:
        return float(scores[rank - 1])
    wide = float(stdtrit(count - 1, 1 - false_alarms)) * math.sqrt(1 + 1 / count)
    return float(max(scores[-1], scores.mean() + wide * scores.std(ddof=1)))


ROUNDS = 100
CLOSE = 1e-10
"""At this Newton decrement one more step is the last: its error is the square of that of the step before."""


@dataclass(frozen=True, slots=True)
class Logistic:
    centre: Floats
    scale: Floats
    """Spreads; infinite for columns that do not vary."""
    intercept: float
    coefficients: Floats
    """Coefficients for a change by one spread."""

    def scores(self, rows: Floats) -> Floats:
        """Return log odds."""
        scores: Floats = self.intercept + ((rows - self.centre) / self.scale) @ self.coefficients
        return scores


def logistic(rows: Floats, kinds: NDArray[np.bool_], ridge: float = 1.0, spread: Floats | None = None) -> Logistic:
    """Fit rows of both kinds. ``ridge`` is above 0; ``spread`` None takes standard deviations."""
    centre = rows.mean(axis=0)
    spread = rows.std(axis=0, ddof=1) if spread is None else spread
    scale = np.where(spread > 1e-12 * np.abs(centre), spread, np.inf)
    design = np.column_stack([np.ones(len(rows)), (rows - centre) / scale])
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0.0
    target = kinds.astype(np.float64)
    coefficients = np.zeros(design.shape[1])
    loss = _loss(design, target, penalty, coefficients)
    for _ in range(ROUNDS):
        chance = expit(design @ coefficients)
        slope = design.T @ (target - chance) - penalty * coefficients
        curvature = design.T @ (design * (chance * (1 - chance))[:, None]) + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        if float(slope @ step) < CLOSE:
            coefficients = coefficients + step
            break
        size = 1.0
        while (after := _loss(design, target, penalty, coefficients + size * step)) > loss and size > CLOSE:
            size /= 2
        coefficients, loss = coefficients + size * step, after
    return Logistic(centre, scale, float(coefficients[0]), coefficients[1:])


def _loss(design: Floats, target: Floats, penalty: Floats, coefficients: Floats) -> float:
    log_odds = design @ coefficients
    return float(np.sum(np.logaddexp(0.0, log_odds) - target * log_odds) + np.sum(penalty * coefficients**2) / 2)


@dataclass(frozen=True, slots=True)
class Operating:
    """The effect of alarming at a score of at least ``threshold``."""

    threshold: float
    false_alarms: float
    """The share of negatives that alarm."""
    detected: float
    """The share of positives that alarm."""


@dataclass(frozen=True, slots=True)
class Area:
    value: float
    error: float
    """Standard error, DeLong's."""
    interval: Bounds | None
    """None for fewer than two of either kind, and where the kinds do not overlap: then DeLong's variance is 0."""


def curve(positives: Sequence[float], negatives: Sequence[float]) -> list[Operating]:
    """Return every threshold that changes something, from the strictest. The first never alarms, the last always does."""
    high, low = np.sort(positives), np.sort(negatives)
    thresholds = [math.inf, *np.unique(np.concatenate([high, low]))[::-1].tolist()]
    return [
        Operating(
            threshold,
            1 - float(np.searchsorted(low, threshold)) / len(low),
            1 - float(np.searchsorted(high, threshold)) / len(high),
        )
        for threshold in thresholds
    ]


def area(positives: Sequence[float], negatives: Sequence[float], level: float = 0.95) -> Area:
    """Return the area, for at least one score of each kind."""
    high, low = np.asarray(positives, dtype=np.float64), np.asarray(negatives, dtype=np.float64)
    of_high, of_low = _placements(high, low), 1 - _placements(low, high)
    value = float(of_high.mean())
    if min(len(high), len(low)) < 2:
        return Area(value, math.nan, None)
    error = math.sqrt(float(of_high.var(ddof=1)) / len(high) + float(of_low.var(ddof=1)) / len(low))
    if error == 0 or not 0 < value < 1:
        return Area(value, error, None)
    half = float(ndtri((1 + level) / 2)) * error / (value * (1 - value))
    logit = math.log(value / (1 - value))
    low_end, high_end = (1 / (1 + math.exp(-(logit + side * half))) for side in (-1, 1))
    return Area(value, error, Bounds(low_end, high_end, level))


def _placements(values: Floats, others: Floats) -> Floats:
    """Return the share of others below each value; ties count half."""
    ordered = np.sort(others)
    below, up_to = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    shares: Floats = (below + up_to) / (2 * len(ordered))
    return shares
