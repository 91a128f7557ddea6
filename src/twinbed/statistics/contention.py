"""Was a run contended?  A detector that is told only what its machine measured, trained and tested on separate runs.

A run is contended where its rate is at least ``drop`` below the mean rate at the least N: less than matters (``fallen``), so
that it may be told before. The detector is a logistic regression on the machine's metrics; its runs are split by replicate,
so that no test run was made beside a training run of its replicate. It alarms above a threshold that at most ``false_alarms``
of runs without contention exceed: the conformal quantile of such runs' scores, each from a detector that has not seen its
replicate. Of fewer than 1/false_alarms - 1 it is their greatest, and says less than it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from twinbed.statistics.logistic import Logistic, logistic
from twinbed.statistics.roc import Area, Operating, area, curve

Floats = NDArray[np.float64]
DROP, FALLEN, FALSE_ALARMS, MOST = 0.05, 0.10, 0.05, 0.5


@dataclass(frozen=True, slots=True)
class Runs:
    """One entry a run."""

    n: Sequence[int]
    replicate: Sequence[int]
    rate: Sequence[float]
    machine: Floats
    """A row a run, a column a metric of the machine."""


@dataclass(frozen=True, slots=True)
class Detector:
    model: Logistic
    threshold: float

    def alarms(self, machine: Floats) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.model.scores(machine) > self.threshold
        return found


@dataclass(frozen=True, slots=True)
class Lead:
    """All of tested N; None where none is."""

    alarmed: int | None
    """The least N from which on more than half of the test runs at each N alarm."""
    fallen: int | None
    """The least N from which on the mean rate is ``fallen`` lower than at the least N."""


@dataclass(frozen=True, slots=True)
class Detection:
    """``area``, ``curve`` and the shares are of the test runs."""

    detector: Detector
    train: tuple[int, ...]
    """Replicates."""
    test: tuple[int, ...]
    area: Area
    curve: list[Operating]
    false_alarms: float
    detected: float
    lead: Lead


def contended(runs: Runs, drop: float = DROP) -> NDArray[np.bool_]:
    """Whether each run's rate is at least ``drop`` below the mean at the least N."""
    least = min(runs.n)
    single = fmean(rate for n, rate in zip(runs.n, runs.rate, strict=True) if n == least)
    found: NDArray[np.bool_] = np.asarray(runs.rate) <= (1 - drop) * single
    return found


def detect(runs: Runs, drop: float = DROP, fallen: float = FALLEN, false_alarms: float = FALSE_ALARMS) -> Detection:
    """Trains on every other replicate, in their order, and tests on the rest.

    Raises ValueError for fewer than four replicates, and where training or test runs are of one kind only.
    """
    replicates = sorted(set(runs.replicate))
    train, test = tuple(replicates[::2]), tuple(replicates[1::2])
    if len(replicates) < 4:
        raise ValueError(f"{len(replicates)} replicates: a detector needs at least 4, two to train on and two to test")
    kinds, of_run = contended(runs, drop), np.asarray(runs.replicate)
    first, second = np.isin(of_run, train), np.isin(of_run, test)
    for name, part in (("training", first), ("test", second)):
        if not kinds[part].any():
            raise ValueError(f"no {name} run is contended: none has lost {drop * 100:g} % of its rate")
        if kinds[part].all():
            raise ValueError(f"every {name} run is contended: there is nothing to tell apart")
    model = logistic(runs.machine[first], kinds[first])
    detector = Detector(model, _threshold(runs, kinds, train, false_alarms))
    scores, alarms = model.scores(runs.machine), detector.alarms(runs.machine)
    positives, negatives = scores[second & kinds].tolist(), scores[second & ~kinds].tolist()
    return Detection(
        detector,
        train,
        test,
        area(positives, negatives),
        curve(positives, negatives),
        float(alarms[second & ~kinds].mean()),
        float(alarms[second & kinds].mean()),
        _lead(runs, alarms, second, fallen),
    )


def _threshold(runs: Runs, kinds: NDArray[np.bool_], train: Sequence[int], false_alarms: float) -> float:
    of_run = np.asarray(runs.replicate)
    scores: list[float] = []
    for left_out in train:
        rest = np.isin(of_run, [each for each in train if each != left_out])
        if 0 < kinds[rest].sum() < rest.sum():
            model = logistic(runs.machine[rest], kinds[rest])
            scores += model.scores(runs.machine[(of_run == left_out) & ~kinds]).tolist()
    if not scores:
        raise ValueError("all contended training runs are of one replicate: nothing can be set aside for the threshold")
    rank = min(len(scores), math.ceil((len(scores) + 1) * (1 - false_alarms)))
    return sorted(scores)[rank - 1]


def _lead(runs: Runs, alarms: NDArray[np.bool_], second: NDArray[np.bool_], share: float) -> Lead:
    of_n, rates = np.asarray(runs.n), np.asarray(runs.rate)
    tested = sorted(set(runs.n))
    single = rates[of_n == tested[0]].mean()
    alarmed = [bool(alarms[second & (of_n == n)].mean() > MOST) for n in tested if (second & (of_n == n)).any()]
    fallen = [bool(rates[of_n == n].mean() <= (1 - share) * single) for n in tested]
    with_test = [n for n in tested if (second & (of_n == n)).any()]
    return Lead(_from_on(with_test, alarmed), _from_on(tested, fallen))


def _from_on(tested: Sequence[int], found: Sequence[bool]) -> int | None:
    first = None
    for n, each in zip(reversed(tested), reversed(found), strict=True):
        if not each:
            break
        first = n
    return first
