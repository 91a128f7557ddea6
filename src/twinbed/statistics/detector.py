"""A detector of one kind of runs, from other metrics of the runs: a logistic regression and the threshold of its score.

Columns are divided by their spread among runs of one N, so that values outside that spread count, whatever their unit. The
ridge, and the choice between metrics and their logarithms, are those with the largest area under the ROC curve, for replicates
left out. The area compares the hardest runs (to be detected first) with those of the other kind.

It alarms above a threshold that at most ``false_alarms`` of runs of the other kind exceed, whatever their distribution. The
threshold is the conformal quantile of such runs' scores, each from a model that has not seen its replicate (Vovk, Gammerman and
Shafer 2005).  Fewer than 1/false_alarms - 1 runs have no such quantile: then the threshold is Student's prediction bound for
one more run, or the greatest score if that is more. The models that score these runs have seen one replicate less, and the
ridge is chosen on the same runs; docs/coverage.md measures the effect.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from twinbed.statistics.logistic import Logistic, logistic
from twinbed.statistics.roc import area

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
    for each in np.unique(n):
        of = rows[n == each]
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
    for each in np.unique(runs.replicate):
        here = runs.replicate == each
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
