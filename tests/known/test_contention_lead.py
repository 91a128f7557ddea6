"""docs/coverage.md, contention, in small: planted contention is detected before the rate has fallen, and nearly at best."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coverage import read_pages, tables
from benchmarks.simulated.contention import FALLEN, HEADS, IN_TIME, PLANTED, REPLICATES, outcome

from twinbed.statistics.contention import FALSE_ALARMS, Runs, detect

STUDIES = 25
FIRST, LOGARITHMS, *_, WITH_THE_RATE, _WITH_LOGARITHMS = PLANTED


@pytest.mark.parametrize(("replicates", "leads"), [(16, 24), (8, 22), (4, 20)])
def test_where_the_machine_turns_first_the_alarm_comes_in_time(replicates: int, leads: int) -> None:
    found = outcome(FIRST, replicates, STUDIES)
    assert found.leads * STUDIES >= leads
    assert found.least_area >= 0.95
    # 5 % and three standard errors of the mean, of thresholds that differ by some per cent from study to study.
    assert found.false_alarms <= FALSE_ALARMS + 0.03 and found.quiet <= FALSE_ALARMS
    assert FIRST.best() > 0.999


def test_where_it_turns_with_the_rate_it_is_near_the_best_that_can_be() -> None:
    """Three metrics that are each 4/3 standard deviations away: a normal's share below the root of 3 times that less 1.645."""
    found = outcome(WITH_THE_RATE, 16, STUDIES)
    assert WITH_THE_RATE.best() == pytest.approx(0.7469, abs=1e-4)
    assert 0.7 * WITH_THE_RATE.best() <= found.in_time <= WITH_THE_RATE.best()
    assert found.area >= 0.95 and found.quiet <= FALSE_ALARMS


def test_of_metrics_whose_logarithms_are_normal_logarithms_are_taken() -> None:
    found = outcome(LOGARITHMS, 8, STUDIES)
    assert found.leads * STUDIES >= 22 and found.quiet <= FALSE_ALARMS


def test_where_no_number_is_in_time_that_is_said() -> None:
    runs = FIRST.study(1, 8)
    kept = np.asarray(runs.n) != IN_TIME
    of_n, replicate, rate = (np.asarray(each)[kept].tolist() for each in (runs.n, runs.replicate, runs.rate))
    found = detect(Runs(of_n, replicate, rate, runs.machine[kept])).lead
    assert found.before is None and found.fallen == FALLEN


def test_the_page_keeps_what_it_promises() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in tables(read_pages())["contention"].splitlines()]
    assert rows[0] == list(HEADS) and len(rows) == 2 + len(PLANTED) * len(REPLICATES)
    for row in rows[2:]:
        area, false_alarms, quiet = float(row[2].split()[0]), float(row[3]), float(row[4])
        assert area >= 0.95, row
        # The limit, and three Monte Carlo standard errors of 200 studies.
        assert false_alarms <= 5 + 1.5 and quiet <= 5 + 1.0, row
