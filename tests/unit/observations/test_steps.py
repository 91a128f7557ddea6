"""The step of each group's values, by metric, testbed and cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from twinbed.observations.samples import CellRuns, Declared, Key, resolve
from twinbed.statistics.sample import Sample

Cells = Mapping[str, Mapping[str, Sequence[float]]]
"""Cell -> testbed -> values."""


def resolved(metrics: Mapping[str, tuple[str, Cells]]) -> tuple[dict[str, Declared], dict[tuple[str, str, str], float]]:
    """``metrics``: name -> (unit, values). The steps are by metric, cell and testbed."""
    declared = {name: Declared(unit, "application", "ratio", True, "") for name, (unit, _) in metrics.items()}
    groups: dict[str, dict[str, CellRuns]] = {}
    for name, (_, cells) in metrics.items():
        for cell, of_cell in cells.items():
            for testbed, values in of_cell.items():
                group = groups.setdefault(cell, {}).setdefault(testbed, CellRuns())
                group.values[name, "", ""] = Sample(map(float, values))
    resolve(declared, groups)

    def of(key: Key, group: CellRuns) -> float:
        return group.steps.get(key, 0.0)

    places = [(cell, testbed, group) for cell, of_cell in groups.items() for testbed, group in of_cell.items()]
    return declared, {(key[0], cell, testbed): of(key, group) for cell, testbed, group in places for key in group.values}


def steps_of(unit: str, cells: Cells, metric: str = "m") -> dict[tuple[str, str], float]:
    return {place[1:]: step for place, step in resolved({metric: (unit, cells)})[1].items()}


FINE = [math.sqrt(each) for each in (10, 11, 12, 13, 14)]
TICKS = [12, 16, 16, 12, 16]


def test_each_testbed_has_its_own_step() -> None:
    steps = steps_of("ms", {"small": {"here": FINE, "there": [3, 4, 3, 4, 3]}})
    assert steps == {("small", "here"): 0.0, ("small", "there"): 1.0}


def test_ticks_show_in_all_testbeds_together() -> None:
    """Five values of two ticks of 4 are not enough; ten are, and a side that does not vary has the other's step."""
    steps = steps_of("ms", {"small": {"here": TICKS, "there": TICKS[::-1]}, "large": {"here": [20] * 5, "there": [24] * 5}})
    assert set(steps.values()) == {4.0}
    assert set(steps_of("ms", {"small": {"here": TICKS, "there": [13] * 5}}).values()) == {1.0}


def test_cells_that_do_not_vary_show_no_lattice() -> None:
    assert set(steps_of("ms", {"one": {"here": [1] * 5}, "two": {"here": [41] * 5}}).values()) == {1.0}


def test_a_cell_may_be_printed_with_fewer_digits() -> None:
    steps = steps_of("ms", {"small": {"here": [1.01, 1.13, 1.27, 1.09]}, "large": {"here": [1200, 1300, 1100, 1500]}})
    assert steps == {("small", "here"): 0.01, ("large", "here"): 100.0}


def test_values_far_below_anothers_step_do_not_have_it() -> None:
    steps = steps_of("ms", {"": {"here": [1e-9, 2e-9, 1.5e-9, 1e-9], "there": [1e9, 2e9, 1.5e9, 1e9, 3e9]}})
    assert steps["", "here"] <= 0.5e-9


@pytest.mark.parametrize(
    ("metric", "unit", "values", "step", "events"),
    [
        ("failed_requests", "1", [1, 2, 0, 4], 0.0, True),
        ("frames", "1", [10, 12, 11, 10], 1.0, False),
        ("frames", "count", [10, 12, 11, 10], 0.0, True),
        ("fairness", "1", [1, 1, 1, 1], 0.0, False),
        ("fairness", "1", [0.98, 0.97, 0.99, 0.95], 0.01, False),
        ("bytes", "bytes", [500_000, 500_000, 500_000, 500_000], 0.0, False),
        ("bytes", "bytes", [3145728, 4194304, 3145728, 5242880, 4194304], 1048576.0, False),
    ],
)
def test_only_what_is_known_to_count_is_not_rounded(
    metric: str, unit: str, values: Sequence[float], step: float, events: bool
) -> None:
    declared, steps = resolved({metric: (unit, {"": {"here": values}})})
    assert steps == {(metric, "", "here"): pytest.approx(step)}
    assert declared[metric].events is events


def test_what_is_divided_by_the_work_has_the_step_of_what_was_divided() -> None:
    """Ticks of 10 ms, 200 requests: 50 us a request. Packets are counted, and so are exact divided by anything."""
    ticks, requests = [0.03, 0.04, 0.03, 0.05], [200, 201, 199, 200]
    _, steps = resolved(
        {
            "cpu_seconds": ("s", {"": {"here": ticks}}),
            "cpu_seconds_per_request": ("s/request", {"": {"here": [a / b for a, b in zip(ticks, requests, strict=True)]}}),
            "packets": ("1", {"": {"here": [2000, 2010, 1990, 2000]}}),
            "packets_per_request": ("1/request", {"": {"here": [10.0] * 4}}),
        }
    )
    assert steps["cpu_seconds_per_request", "", "here"] == pytest.approx(5e-5, rel=0.01)
    assert steps["packets_per_request", "", "here"] == 0.0
