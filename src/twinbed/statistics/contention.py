"""Was a run contended? A detector that uses only the machine's metrics, trained and tested on separate runs.

A run is contended if its own rate and the mean rate at its N (made monotone over N) are both at least ``drop`` below the mean
at the least N. It is free of contention if neither is. If they disagree, the noise of one rate would decide: such a run is
neither, counts as ``unclear``, and is not used for training. The limit ``drop`` is less than the loss that matters
(``fallen``), so that a run may be detected before that loss.

Runs are split by replicate, so that no test run shares its replicate with a training run. The kinds of training runs follow
from means of training runs alone. The kinds of test runs, and the loss of the rate at an N, follow from means of all runs.

How early a detector alarms: the share of runs that alarm at each N, together with the loss of their rate there.

Shares have Clopper and Pearson's intervals (Biometrika 26, 1934): runs of one N are of different replicates, and assumed to be
independent. Runs of several N together do not vary more than runs of one, so that their interval is not too narrow. The method
assumes that more contention never makes alarms rarer, so the N from which most runs alarm is taken from shares made monotone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from twinbed.statistics.bounds import Bounds
from twinbed.statistics.capacity import isotonic
from twinbed.statistics.detector import Area, Detector, Operating, Training, area, curve, train

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
DROP, FALLEN, FALSE_ALARMS = 0.05, 0.10, 0.05


@dataclass(frozen=True, slots=True)
class Runs:
    """One entry a run."""

    n: Sequence[int]
    replicate: Sequence[int]
    rate: Sequence[float]
    machine: Floats
    """A row a run, a column a metric of the machine."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """One entry a run."""

    contended: Bools
    free: Bools
    lost: Mapping[int, float]
    """N -> share of the mean rate at the least N that the monotone mean has lost; 0 where it has gained."""

    @property
    def unclear(self) -> Bools:
        return ~(self.contended | self.free)


@dataclass(frozen=True, slots=True)
class Detection:
    """``area``, ``curve``, the shares and the lead are of the test runs."""

    detector: Detector
    train: tuple[int, ...]
    """Replicates."""
    test: tuple[int, ...]
    scores: tuple[float, ...]
    """The scores of all runs, in their order."""
    kinds: Kinds
    """The kinds by which test runs are scored."""
    area: Area
    curve: list[Operating]
    false_alarms: float
    detected: float
    unclear: int
    """Test runs that are neither contended nor free of it."""
    lead: Lead


def kinds(runs: Runs, drop: float = DROP, of: Bools | None = None) -> Kinds:
    """Classify runs; ``of`` are the runs whose means count, by default all. A run whose N has none of them is neither. Raises
    ValueError where the mean at the least N is not above 0."""
    n, rate = np.asarray(runs.n), np.asarray(runs.rate, dtype=np.float64)
    of = np.ones(len(n), dtype=np.bool_) if of is None else of
    tested = np.unique(n[of]).tolist()
    means = [float(rate[of & (n == count)].mean()) for count in tested]
    if means[0] <= 0:
        raise ValueError(f"the mean rate at N = {tested[0]} is {means[0]:g}: no share of it can be lost")
    weights = [float((of & (n == count)).sum()) for count in tested]
    lost = {
        count: max(0.0, 1 - mean / means[0])
        for count, mean in zip(tested, isotonic(means, weights, increasing=False), strict=True)
    }
    own = 1 - rate / means[0] >= drop
    low = np.array([lost.get(count, 0.0) >= drop for count in runs.n])
    known = np.isin(n, tested)
    return Kinds(known & own & low, known & ~own & ~low, lost)


def detect(runs: Runs, drop: float = DROP, fallen: float = FALLEN, false_alarms: float = FALSE_ALARMS) -> Detection:
    """Train on every other replicate, in their order, and test on the others. Raises ValueError for fewer than four replicates,
    and where training or test runs are of one kind only."""
    replicates = sorted(set(runs.replicate))
    training, testing = tuple(replicates[::2]), tuple(replicates[1::2])
    if len(replicates) < 4:
        raise ValueError(f"{len(replicates)} replicates: a detector needs at least 4, two to train on and two to test")
    n, of_run = np.asarray(runs.n), np.asarray(runs.replicate)
    first, second = np.isin(of_run, training), np.isin(of_run, testing)
    if (least := min(runs.n)) not in n[first]:
        raise ValueError(f"no training run at N = {least}, which other N are compared with")
    trained, tested = kinds(runs, drop, first), kinds(runs, drop)
    for name, part, classes in (("training", first, trained), ("test", second, tested)):
        if not classes.contended[part].any():
            raise ValueError(
                f"no {name} run is contended: no run lost {drop * 100:g} % of the rate at an N whose mean lost as much"
            )
        if not classes.free[part].any():
            raise ValueError(f"no {name} run is free of contention: there is nothing to distinguish")
    nearest = min(n[first & trained.contended])
    detector = train(
        Training(
            runs.machine[first],
            trained.contended[first],
            trained.free[first],
            (trained.contended & (n == nearest))[first],
            n[first],
            of_run[first],
        ),
        false_alarms,
    )
    scores, alarms = detector.scores(runs.machine), detector.alarms(runs.machine)
    positives, negatives = scores[second & tested.contended].tolist(), scores[second & tested.free].tolist()
    return Detection(
        detector,
        training,
        testing,
        tuple(scores.tolist()),
        tested,
        area(positives, negatives),
        curve(positives, negatives),
        float(alarms[second & tested.free].mean()),
        float(alarms[second & tested.contended].mean()),
        int((second & tested.unclear).sum()),
        lead([_at(count, lost, alarms[second & (n == count)]) for count, lost in tested.lost.items()], drop, fallen),
    )


def _at(n: int, lost: float, alarms: Bools) -> AtN:
    return AtN(n, lost, Share(int(alarms.sum()), len(alarms)) if len(alarms) else None)


MOST = 0.5


@dataclass(frozen=True, slots=True)
class Share:
    count: int
    of: int
    """At least 1."""

    @property
    def value(self) -> float:
        return self.count / self.of

    def interval(self, level: float = 0.95) -> Bounds:
        tail, rest = (1 - level) / 2, self.of - self.count
        low = 0.0 if self.count == 0 else float(betaincinv(self.count, rest + 1, tail))
        high = 1.0 if rest == 0 else float(betaincinv(self.count + 1, rest, 1 - tail))
        return Bounds(low, high, level)


@dataclass(frozen=True, slots=True)
class AtN:
    """One tested N."""

    n: int
    lost: float
    """Share of the rate at the least N that the mean rate, made monotone over N, has lost."""
    alarms: Share | None
    """The share of test runs that alarm; None where there is no test run."""


@dataclass(frozen=True, slots=True)
class Lead:
    steps: tuple[AtN, ...]
    alarmed: int | None
    """The least N at which more than half of the test runs alarm, after shares are made monotone over N; None without one."""
    fallen: int | None
    """The least N at which the rate has fallen by what matters; None without one."""
    before: Share | None
    """The share of test runs that alarm at the N that are contended but have lost less than matters. None without such an N:
    nothing could then be detected in time."""


def lead(steps: Sequence[AtN], drop: float, fallen: float) -> Lead:
    """Return the lead over tested N, in their order."""
    tested = [(step.n, step.alarms) for step in steps if step.alarms is not None]
    monotone = isotonic([alarms.value for _, alarms in tested], [float(alarms.of) for _, alarms in tested])
    alarmed = next((n for (n, _), share in zip(tested, monotone, strict=True) if share > MOST), None)
    between = [step.alarms for step in steps if drop <= step.lost < fallen and step.alarms is not None]
    before = Share(sum(share.count for share in between), sum(share.of for share in between)) if between else None
    return Lead(tuple(steps), alarmed, next((step.n for step in steps if step.lost >= fallen), None), before)
