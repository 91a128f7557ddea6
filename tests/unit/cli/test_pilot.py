"""`twinbed plan --pilot`: from a pilot's values to replicates, time and disk."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

from synthetic_results import write_study
from twinbed.cli import main
from twinbed.design.replicates import Levels, needs, whole
from twinbed.model.comparison import Comparison, Estimate
from twinbed.model.result import Verdict
from twinbed.statistics.power import power_different, power_equivalent, upper_deviation

STUDY = """
study: planned
testbeds: {a: {driver: fake}, b: {driver: fake, ratio: 1.3}}
workload: {kind: planted}
factors: {testbed: [a, b], workload.rate: [1, 2]}
replicates: 5
"""
LEVELS = Levels(0.05, 0.05)


def sample(values: list[float]) -> Estimate:
    return Estimate(len(values), None, None, None, tuple(values))


def comparison(values: list[float], reference: list[float], scale: str = "ratio", name: str = "rate") -> Comparison:
    return Comparison(
        metric=name,
        unit="1/s",
        layer="application",
        scale=scale,
        host="",
        direction="",
        headline=True,
        cell={},
        testbed="b",
        reference="a",
        estimate=sample(values),
        reference_estimate=sample(reference),
        ratio=None,
        ratio_interval=None,
        margin=0.1,
        verdict=Verdict.INCONCLUSIVE,
        within_rule=None,
        intervals_overlap=None,
    )


def spread(centre: float, deviation: float) -> list[float]:
    """Five values whose logarithms have this mean and standard deviation."""
    steps = [-2, -1, 0, 1, 2]
    return [centre * math.exp(deviation * step / math.sqrt(2.5)) for step in steps]


def test_numbers_are_the_smallest_that_have_the_power() -> None:
    (need,) = needs([comparison(spread(103, 0.06), spread(100, 0.04))], 0.1, LEVELS)
    assert need.verdict is Verdict.EQUIVALENT
    assert need.ratio == pytest.approx(1.03)
    assert need.deviations == pytest.approx((0.06, 0.04))
    upper = (upper_deviation(0.06, 5), upper_deviation(0.04, 5))
    cases = (
        (need.as_found, math.log(1.03), (0.06, 0.04)),
        (need.as_found_upper, math.log(1.03), upper),
        (need.if_equal, 0.0, (0.06, 0.04)),
        (need.if_equal_upper, 0.0, upper),
    )
    for numbers, truth, deviations in cases:
        for n, power in zip(numbers, (0.8, 0.9), strict=True):
            assert n is not None
            assert power_equivalent(truth, deviations, (n, n), math.log(1.1), 0.05) >= power
            assert power_equivalent(truth, deviations, (n - 1, n - 1), math.log(1.1), 0.05) < power


def test_what_lies_outside_is_planned_to_be_shown_different() -> None:
    (need,) = needs([comparison(spread(125, 0.1), spread(100, 0.1))], 0.1, Levels(0.05, 0.05 / 6))
    n = need.as_found[0]
    assert need.verdict is Verdict.DIFFERENT and n is not None
    assert power_different(math.log(1.25), (0.1, 0.1), (n, n), math.log(1.1), 0.05 / 6) >= 0.8
    assert power_different(math.log(1.25), (0.1, 0.1), (n - 1, n - 1), math.log(1.1), 0.05 / 6) < 0.8
    assert need.if_equal == (None, None)


def test_at_the_edge_no_number_is_enough() -> None:
    (need,) = needs([comparison(spread(109.9, 0.1), spread(100, 0.1))], 0.1, LEVELS)
    assert need.as_found == (None, None)
    assert need.if_equal[0] is not None
    assert whole([need])[0].replicates is None


@pytest.mark.parametrize(
    ("values", "scale", "said"),
    [
        ([1.0], "ratio", "fewer than two"),
        ([0.0, 1.0], "ratio", "values without logarithms"),
        ([1.0, 2.0], "ordinal", "values without logarithms"),
    ],
)
def test_what_cannot_be_planned_says_why(values: list[float], scale: str, said: str) -> None:
    (need,) = needs([comparison(values, [1.0, 2.0], scale)], 0.1, LEVELS)
    assert said in need.reason
    assert whole([need]) == ()


def test_the_study_needs_what_its_hardest_comparison_needs() -> None:
    easy, hard = (spread(100, 0.02), spread(100, 0.02)), (spread(100, 0.2), spread(100, 0.1))
    found = needs([comparison(*easy), comparison(*hard, name="hard")], 0.1, LEVELS)
    for row in whole(found):
        assert row.driver.pilot.metric == "hard"
    assert [row.replicates for row in whole(found)][:2] == list(found[1].as_found)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    study = tmp_path / "planned.yaml"
    study.write_text(STUDY)
    noise = {"a": [-0.02, 0.01, 0.03, 0.0, -0.02], "b": [0.03, 0.0, -0.04, 0.02, -0.01]}

    def respond(testbed: str, levels: Any, replicate: int) -> dict[str, float]:
        rate = 1000 * {"a": 1.0, "b": 1.3}[testbed] * math.exp(noise[testbed][replicate] * levels["workload.rate"])
        return {"requests": 1000, "requests_per_second": rate, "packets": 10_000, "bytes": 1_200_000}

    write_study(tmp_path / "results", ["a", "b"], {"workload.rate": [1, 2]}, 5, respond)
    return str(study), str(tmp_path / "results")


def test_plan_with_a_pilot_says_what_it_takes(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", files[0], "--pilot", files[1], "--format", "json"]) == 0
    pilot = json.loads(capsys.readouterr().out)["pilot"]
    rates = [row for row in pilot["comparisons"] if row["metric"] == "requests_per_second"]
    assert [(row["factor:workload.rate"], row["to_show"]) for row in rates] == [(1, "different"), (2, "different")]
    # Six headline comparisons: Holm's first step is at a sixth.
    deviations = rates[1]["log_stdev"], rates[1]["reference_log_stdev"]
    n = rates[1]["as_found_80"]
    truth = math.log(rates[1]["ratio"])
    assert power_different(truth, deviations, (n, n), math.log(1.1), 0.05 / 6) >= 0.8
    first = pilot["study"][0]
    assert (first["power"], first["replicates"]) == (0.8, max(row["as_found_80"] for row in pilot["comparisons"]))
    assert first["driven_by"] == "requests per second of b at workload.rate 2"
    assert first["seconds"] == pytest.approx(4 * 10.01 * first["replicates"])
    assert main.run(["plan", files[0], "--pilot", files[1]]) == 0
    text = capsys.readouterr().out
    assert text.startswith("planned: 4 cells x 5 replicates = 20 runs")
    assert "The whole study" in text and "requests per second of b at workload.rate 2" in text
    assert main.run(["plan", files[0], "--pilot", files[1], "--format", "csv"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == len(pilot["comparisons"]) == 6


def test_a_study_with_looks_needs_a_few_more(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    def needed(*options: str) -> int:
        assert main.run(["plan", files[0], "--pilot", files[1], "--format", "json", *options]) == 0
        return int(json.loads(capsys.readouterr().out)["pilot"]["study"][1]["replicates"])

    assert needed() <= needed("-s", "replicates={least: 5, most: 30}") <= 2 * needed()


def test_a_pilot_of_something_else_is_refused(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", files[0], "--pilot", files[1], "-s", "factors.workload.rate=[3]"]) == 2
    assert "no cell and headline metric in common" in capsys.readouterr().err
    Path(files[0]).write_text(STUDY.replace("a:", "z:").replace("[a,", "[z,"))
    assert main.run(["plan", files[0], "--pilot", files[1]]) == 2
    assert "has no testbed 'z'" in capsys.readouterr().err
    assert main.run(["plan", files[0], "--pilot", "nowhere"]) == 2


def test_cells_that_the_pilot_lacks_are_counted(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", files[0], "--pilot", files[1], "-s", "factors.workload.rate=[1, 2, 3]"]) == 0
    assert "The pilot has no run of 1 cell of the study" in capsys.readouterr().out


def test_plan_without_a_pilot_says_how_to_get_one(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", files[0], "-o", files[1]]) == 0
    asks = f"Are these replicates enough? twinbed plan {files[0]} --pilot {files[1]}"
    assert asks in capsys.readouterr().out
    assert main.run(["plan", files[0]]) == 0
    assert "Are these replicates enough?" not in capsys.readouterr().out, "there are no results to tell"
    assert main.run(["plan", files[0], "-s", "replicates={least: 5, most: 30, budget: 2h}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("planned: 4 cells x 5 to 30 replicates = 20 to 120 runs, about 3 min 20 s to 20 min 1 s")
    assert (
        "interim     analyses after 5, 10, 15, 20, 25, 30 replicates; the study ends when every headline metric has a verdict "
        "or 2 h 0 min have passed"
    ) in lines
