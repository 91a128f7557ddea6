"""How well and how early contention is told, on planted studies: against the best detector that there can be.

The rate is planted to have lost 7.7 % at 14 pairs and 14.8 % at 16, so that 14 is the one tested number at which an alarm comes in
time.  The machine's metrics are planted to turn before the rate (at 6 pairs), or with it (at 12).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from twinbed.statistics.contention import FALSE_ALARMS, Detection, Runs, detect

STUDIES = 100
TESTED = (1, 2, 4, 8, 14, 16, 24, 32, 40)
IN_TIME = 14
FALLS_AT = 12
NOISE = (3.0, 2e3, 0.1, 1.0)
"""Of idle time, interrupts, delay in run queues, and a metric that says nothing."""


def planted(seed: int, turns_at: int | None, replicates: int, *, logarithmic: bool = False) -> Runs:
    """``turns_at`` None plants no contention at all."""
    chance = np.random.default_rng(seed)
    of_n, replicate, rate, machine = [], [], [], []
    for each in range(replicates):
        for n in TESTED:
            load = max(0, n - FALLS_AT) / 30 if turns_at is not None else 0.0
            of_n.append(n)
            replicate.append(each)
            rate.append(1000 * math.exp(-1.2 * load + chance.normal(0, 0.02)))
            row = means(n, turns_at) + chance.normal(0, NOISE)
            machine.append(np.exp(row / NOISE / 5) if logarithmic else row)
    return Runs(of_n, replicate, rate, np.array(machine))


def means(n: int, turns_at: int | None) -> NDArray[np.float64]:
    load = max(0, n - FALLS_AT) / 30 if turns_at is not None else 0.0
    early = max(0, n - turns_at) / 30 if turns_at is not None else 0.0
    return np.array([90 - 60 * early, 5e3 + 4e4 * early, 2 * load, 0.0])


def best(turns_at: int, false_alarms: float = FALSE_ALARMS) -> float:
    """The share of runs at IN_TIME that no detector can exceed: the likelihood ratio's (Neyman and Pearson), of normal metrics
    with one covariance; runs free of contention all taken as the most alike to them that were tested."""
    apart = np.linalg.norm((means(IN_TIME, turns_at) - means(8, turns_at)) / np.array(NOISE))
    return float(ndtr(apart - ndtri(1 - false_alarms)))


def leads(found: Sequence[Detection]) -> int:
    pairs = [(each.lead.alarmed, each.lead.fallen) for each in found]
    return sum(alarmed is not None and fallen is not None and alarmed < fallen for alarmed, fallen in pairs)


def false_alarms(found: Sequence[Detection], replicates: int, *, logarithmic: bool = False) -> float:
    """Of runs of other studies, without contention."""
    quiet = [planted(9000 + at, None, replicates, logarithmic=logarithmic).machine for at in range(len(found))]
    return float(np.mean([each.detector.alarms(runs).mean() for each, runs in zip(found, quiet, strict=True)]))


def at_14(found: Sequence[Detection], turns_at: int, replicates: int) -> float:
    """Of runs of other studies, where an alarm comes in time."""
    shares = []
    for at, each in enumerate(found):
        runs = planted(5000 + at, turns_at, replicates)
        shares.append(each.detector.alarms(runs.machine)[np.asarray(runs.n) == IN_TIME].mean())
    return float(np.mean(shares))


@pytest.mark.parametrize(("replicates", "least"), [(16, 98), (8, 93), (4, 85)])
def test_where_the_machine_turns_first_the_alarm_comes_in_time(replicates: int, least: int) -> None:
    found = [detect(planted(seed, 6, replicates)) for seed in range(STUDIES)]
    assert leads(found) >= least
    assert min(each.area.value for each in found) >= 0.95
    assert float(np.mean([each.false_alarms for each in found])) <= FALSE_ALARMS
    assert false_alarms(found, replicates) <= FALSE_ALARMS
    assert best(6) > 0.999


@pytest.mark.parametrize(("replicates", "near"), [(16, 0.75), (8, 0.75), (4, 0.65)])
def test_where_it_turns_with_the_rate_it_is_near_the_best_that_can_be(replicates: int, near: float) -> None:
    """Three metrics that are each 1.33 standard deviations away at 14 pairs tell 75 % of runs at 5 % false alarms, no more."""
    found = [detect(planted(seed, 12, replicates)) for seed in range(STUDIES)]
    bound = best(12)
    assert bound == pytest.approx(0.747, abs=0.001)
    assert near * bound <= at_14(found, 12, replicates) <= bound
    assert float(np.mean([each.area.value for each in found])) >= 0.95
    assert float(np.mean([each.false_alarms for each in found])) <= FALSE_ALARMS
    assert false_alarms(found, replicates) <= FALSE_ALARMS


def test_of_lognormal_metrics_logarithms_are_taken() -> None:
    found = [detect(planted(seed, 6, 16, logarithmic=True)) for seed in range(STUDIES)]
    assert leads(found) >= 98
    assert false_alarms(found, 16, logarithmic=True) <= FALSE_ALARMS


def test_where_no_number_is_in_time_that_is_said() -> None:
    runs = planted(1, 6, 8)
    kept = np.asarray(runs.n) != IN_TIME
    of_n, replicate, rate = (np.asarray(each)[kept].tolist() for each in (runs.n, runs.replicate, runs.rate))
    found = detect(Runs(of_n, replicate, rate, runs.machine[kept])).lead
    assert found.before is None and found.fallen == 16
