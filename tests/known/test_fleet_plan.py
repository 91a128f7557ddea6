"""How long studies take on fleets: arithmetic against its simulation, and against cases that are known by hand."""

from __future__ import annotations

import pytest
from benchmarks.simulated.fleet import Plan, bound, seconds, simulated, throughput

SMALL = Plan(runs=4000, cells=10, run_s=10.0, run_bytes=2e6, scheduler_s=0.01, write_s=0.02)


@pytest.mark.parametrize("machines", [1, 10, 100, 250, 400])
def test_mean_value_analysis_is_what_exponential_times_give(machines: int) -> None:
    runs = 40 * max(machines, 50)
    plan = Plan(runs, 1, 10.0, 2e6, scheduler_s=0.01, write_s=0.02)
    # The last runs of each machine end alone: their tail is taken off by doubling the study.
    once, _ = simulated(plan, machines, seed=1, exponential=True)
    twice, _ = simulated(Plan(2 * runs, 1, 10.0, 2e6, scheduler_s=0.01, write_s=0.02), machines, seed=1, exponential=True)
    assert runs / (twice - once) == pytest.approx(throughput(plan, machines), rel=0.08)


@pytest.mark.parametrize("machines", [1, 10, 100, 1000])
def test_no_fleet_is_faster_than_its_bound(machines: int) -> None:
    assert throughput(SMALL, machines) <= bound(SMALL, machines) * (1 + 1e-12)
    assert simulated(SMALL, machines, seed=2)[0] >= SMALL.runs / bound(SMALL, machines) * 0.95  # a run is 10 s on average alone


def test_one_machine_makes_one_run_after_the_other() -> None:
    each = 10.0 + 0.01 + 0.02 + 8 * 2e6 / 1e9
    assert seconds(SMALL, 1) == pytest.approx(4000 * each)
    assert simulated(SMALL, 1, seed=3)[0] == pytest.approx(4000 * each, rel=0.01)


@pytest.mark.parametrize("machines", [7, 100, 300])
def test_whole_studies_take_what_is_said_of_them(machines: int) -> None:
    """Times that vary little queue less than exponential ones, and the last machine ends a little after the mean of all."""
    took = simulated(SMALL, machines, seed=4)[0]
    assert 0.92 * took <= seconds(SMALL, machines) <= 1.2 * took


def test_more_machines_than_blocks_are_idle() -> None:
    assert seconds(SMALL, 1000) == seconds(SMALL, 400)
