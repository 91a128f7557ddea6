"""Uncertain inputs: independent draws, the same on every testbed, by groups of testbeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from twinbed import design, registry
from twinbed.model.run import Level
from twinbed.model.units import parse_size
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.sample import independent
from twinbed.study.study import Study

PAYLOAD = "payload: {log_uniform: [500B, 16MiB]}"


def study(uncertain: str, more: str = "", seed: int = 7) -> Study:
    text = f"""
study: drawn
seed: {seed}
testbeds: {{physical: {{driver: container, cpus: auto}}, virtual: {{driver: container}}}}
workload: {{kind: http}}
uncertain: {{{uncertain}}}
{more}
"""
    return load(text, "drawn.yaml", registry.catalogue())


def problems(uncertain: str, more: str = "") -> list[str]:
    with pytest.raises(StudyError) as caught:
        study(uncertain, more)
    return [str(problem) for problem in caught.value.problems]


def at(study: Study, testbed: str) -> dict[Level, Level]:
    return {cell.levels["draw"]: cell.levels["payload"] for cell in study.cells if cell.testbed_name == testbed}


def test_draws_are_independent_and_uniform() -> None:
    draws = np.array([[independent(3, name, index) for index in range(2000)] for name in ("payload", "rate")])
    for each in draws:
        assert stats.kstest(each, "uniform").pvalue > 0.001
        # Spread evenly, as levels of factors are, neighbours would be far apart.
        assert abs(np.corrcoef(each[1:], each[:-1])[0, 1]) < 3.5 / np.sqrt(2000)
    assert abs(np.corrcoef(draws)[0, 1]) < 3.5 / np.sqrt(2000)


def test_groups_share_draws_and_have_further_ones() -> None:
    drawn = study(f"samples: {{physical+virtual: 12, virtual: 30}}, {PAYLOAD}")
    physical, virtual = at(drawn, "physical"), at(drawn, "virtual")
    assert list(physical) == [*range(1, 13)]
    assert list(virtual) == [*range(1, 43)]
    assert all(virtual[draw] == payload for draw, payload in physical.items())
    assert len(design.runs(drawn)) == 54  # each once
    assert len(design.runs(study(f"samples: 4, {PAYLOAD}", "replicates: 3"))) == 24
    assert drawn.to_json()["uncertain"] == {"inputs": ["payload"], "samples": {"physical+virtual": 12, "virtual": 30}}


def test_a_study_that_grows_keeps_its_runs() -> None:
    few = {run.id for run in design.runs(study(f"samples: {{physical+virtual: 12, virtual: 30}}, {PAYLOAD}"))}
    many = {run.id for run in design.runs(study(f"samples: {{physical+virtual: 20, virtual: 90}}, {PAYLOAD}"))}
    assert few < many
    other = {run.id for run in design.runs(study(f"samples: 42, {PAYLOAD}", seed=8))}
    assert not few & other


def test_equal_draws_are_all_run() -> None:
    """Of few whole numbers draws come again; leaving them out would change the distribution."""
    drawn = study("samples: 50, threads: {integers: [1, 2]}")
    assert len([cell for cell in drawn.cells if cell.testbed_name == "virtual"]) == 50
    assert len({run.id for run in design.runs(drawn)}) == 100


@pytest.mark.parametrize(
    ("how", "distribution"),
    [
        ("log_normal: [64KiB, 3]", stats.lognorm(np.log(3), scale=65536)),
        ("normal: [64KiB, 10KiB]", stats.norm(65536, 10240)),
        ("uniform: [1KiB, 64KiB]", stats.uniform(1024, 63 * 1024)),
    ],
)
def test_draws_have_their_distribution(how: str, distribution: stats.rv_continuous) -> None:
    drawn = at(study(f"samples: 400, payload: {{{how}}}"), "virtual")
    assert stats.kstest([parse_size(str(level)) for level in drawn.values()], distribution.cdf).pvalue > 0.001


def test_factors_are_beside_it() -> None:
    drawn = study(f"samples: 5, {PAYLOAD}", "factors: {threads: [1, 4]}")
    assert len(drawn.cells) == 2 * 2 * 5
    for threads in (1, 4):
        assert len({cell.levels["payload"] for cell in drawn.cells if cell.levels["threads"] == threads}) == 5


@pytest.mark.parametrize(
    ("uncertain", "more", "said"),
    [
        (PAYLOAD, "", "uncertain.samples: is required: how many draws are run"),
        (
            f"samples: {{physical+virtal: 3}}, {PAYLOAD}",
            "",
            "uncertain.samples: 'virtal' is not a testbed; allowed: physical, virtual",
        ),
        (f"samples: 0, {PAYLOAD}", "", "uncertain.samples: 0 is not a number of draws"),
        ("samples: 3", "", "uncertain: names no input"),
        ("samples: 3, payload: [1KiB, 2KiB]", "", "uncertain.payload: does not name its distribution"),
        ("samples: 3, paylod: {uniform: [1KiB, 2KiB]}", "", "uncertain.paylod: is not a setting of this study"),
        ("samples: 3, payload: {normal: [1KiB, 0B]}", "", "uncertain.payload.normal: does not vary"),
        (
            f"samples: 3, {PAYLOAD}",
            "factors: {payload: [1KiB]}",
            "uncertain.payload: is the same setting as the factor 'payload'",
        ),
    ],
)
def test_mistakes_are_told(uncertain: str, more: str, said: str) -> None:
    assert any(said in problem for problem in problems(uncertain, more)), problems(uncertain, more)
