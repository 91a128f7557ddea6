"""Runs that never settle are cautioned beside the verdicts that their means are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from benchmarks.simulated.little import InMemory, record

from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Caution, Kind
from twinbed.model.comparison import Comparisons
from twinbed.model.tables import Outline

STEADY = [0.01, -0.02, 0.015, -0.01, 0.0, 0.02]


def compared(drifts: Mapping[tuple[str, str], Sequence[float | None]]) -> Comparisons:
    """(payload, testbed) -> the drift inside each run, of which the rates are 100."""
    records, rows = [], []
    for (payload, testbed), values in drifts.items():
        for replicate, value in enumerate(values):
            one = record(f"{testbed}{payload}", replicate, len(records), {"testbed": testbed, "payload": payload})
            one.settings["testbed"]["name"] = testbed
            records.append(one)
            about = {"run": one.id, "layer": "application", "host": "", "direction": "", "description": ""}
            rate = {"metric": "rate", "unit": "1/s", "scale": "ratio", "headline": True, "value": 100.0 + replicate}
            drift = {"metric": "rate_drift", "unit": "1", "scale": "interval", "headline": False, "value": value}
            rows += [{**about, **rate}, {**about, **drift}]
    tables = InMemory({"metrics": pa.Table.from_pylist(rows)}, Outline("s", ("real", "virtual"), "real"), records)
    return compare.run(tables)


def unsettled(cautions: Sequence[Caution]) -> list[tuple[str, str]]:
    return [(each.subject, each.detail) for each in cautions if each.kind is Kind.UNSETTLED]


def test_the_caution_goes_with_the_verdicts_of_its_cell() -> None:
    falling = [each - 0.4 for each in STEADY]
    result = compared(
        {
            ("1kB", "real"): STEADY,
            ("1kB", "virtual"): falling,
            ("1MB", "real"): STEADY,
            ("1MB", "virtual"): STEADY,
        }
    )
    expected = ("virtual", "the rate falls by 40 % in the second half of runs")
    for each in result.comparisons:
        assert unsettled(each.cautions) == ([expected] if each.cell["payload"] == "1kB" else [])
    assert unsettled(result.cautions) == [("virtual", f"in 1 of 2 cells: {expected[1]}")]


def test_one_run_among_steady_ones_is_cautioned_too() -> None:
    result = compared({("1kB", "real"): [*STEADY[:5], 0.5], ("1kB", "virtual"): STEADY})
    detail = "the rate rises by 50 % in the second half of one run, by -0.1 % in the mean of the others"
    assert unsettled(result.cautions) == [("real", detail)]


def test_steady_runs_and_runs_without_a_series_are_left_alone() -> None:
    assert unsettled(compared({("1kB", "real"): STEADY, ("1kB", "virtual"): [None] * 6}).cautions) == []
