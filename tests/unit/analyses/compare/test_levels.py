"""``compare --by``: the levels of any factor compared as testbeds are."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.command import twinbed as carried_out

import twinbed
from synthetic_results import write_study
from twinbed.analyses.compare.command import command
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.cli.inputs import ResultsFolders
from twinbed.model.comparison import Comparison, Comparisons
from twinbed.model.error import TwinbedError
from twinbed.model.result import Verdict
from twinbed.model.run import Level
from twinbed.observations.levels import compared_by
from twinbed.report.styles import rendered
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.workloads.planted import planted

TRUTH = {"500B": 1000.0, "20kB": 700.0, "1MiB": 1010.0}


def opened(folder: Path) -> Store:
    return extract(folder, {"planted": planted}, {})


def answer(mean: float, *noise: Any) -> Mapping[str, float | None]:
    """The noise hangs on what it is of alone, so that two studies can have the same numbers."""
    rate = mean * math.exp(random.Random(str(noise)).gauss(0, 0.02))
    return {"requests": round(rate * 10), "requests_per_second": rate, "packets": round(rate * 100), "bytes": 64000}


def by_payload(folder: Path, testbeds: Mapping[str, float], replicates: int = 5, **more: Any) -> Path:
    """Testbed -> its own factor."""

    def respond(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        mean = TRUTH[levels["payload"]] * testbeds[testbed]
        return answer(mean, testbed, levels["payload"], levels.get("offload"), replicate)

    return write_study(folder, list(testbeds), {"payload": list(TRUTH), **more}, replicates, respond)


def paired(folder: Path) -> None:
    """As a study of randomised blocks says."""
    study = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(study | {"comparison": "paired"}))


def bare(each: Comparison, name: str) -> Comparison:
    """Without what names the levels."""
    cautions = tuple(replace(caution, subject=caution.subject.removeprefix(name)) for caution in each.cautions)
    names = {"testbed": each.testbed.removeprefix(name), "reference": each.reference.removeprefix(name)}
    return replace(each, by="", cautions=cautions, **names)


@pytest.mark.parametrize("in_blocks", [False, True])
def test_the_same_numbers_as_testbeds_give_the_identical_comparisons(tmp_path: Path, in_blocks: bool) -> None:
    def as_testbeds(testbed: str, levels: Mapping[str, Any], replicate: int) -> Mapping[str, float | None]:
        return answer(TRUTH[testbed], "bed", testbed, levels["offload"], replicate)

    by_payload(tmp_path / "levels", {"bed": 1.0}, offload=["on", "off"])
    write_study(tmp_path / "testbeds", list(TRUTH), {"offload": ["on", "off"]}, 5, as_testbeds)
    for folder in (tmp_path / "levels", tmp_path / "testbeds"):
        if in_blocks:
            paired(folder)
    levels = compare.run(opened(tmp_path / "levels"), CompareParams(by="payload"))
    testbeds = compare.run(opened(tmp_path / "testbeds"))
    assert {each.paired for each in levels.comparisons if each.metric == "requests_per_second"} == {in_blocks}
    assert len([each for each in levels.comparisons if each.metric == "requests_per_second"]) == 2 * 2
    assert [bare(each, "payload ") for each in levels.comparisons] == [bare(each, "") for each in testbeds.comparisons]
    assert [replace(each, testbed="", reference="") for each in levels.pooled] == [
        replace(each, testbed="", reference="") for each in testbeds.pooled
    ]


def test_other_testbeds_are_cells(tmp_path: Path) -> None:
    by_payload(tmp_path, {"a": 1.0, "b": 3.0})
    result = compare.run(opened(tmp_path), CompareParams(by="payload", reference="20kB"))
    found = [each for each in result.comparisons if each.metric == "requests_per_second"]
    assert [(dict(each.cell), each.testbed, each.reference) for each in found] == [
        ({"on testbed": testbed}, f"payload {level}", "payload 20kB") for testbed in ("a", "b") for level in ("500B", "1MiB")
    ]
    # The truth is the same on both testbeds: 1000 / 700 and 1010 / 700, at 2 % noise.
    for each, truth in zip(found, [1000 / 700, 1010 / 700] * 2, strict=True):
        assert each.ratio is not None and abs(each.ratio / truth - 1) < 0.05
        assert each.verdict is Verdict.DIFFERENT


def test_of_one_testbed_a_switch_is_compared_and_said(tmp_path: Path) -> None:
    def respond(testbed: str, levels: Mapping[str, Level], replicate: int) -> Mapping[str, float | None]:
        return answer(1000.0 if levels["keep_alive"] == "on" else 700.0, replicate)

    write_study(tmp_path, ["bed"], {"payload": ["500B", "1MiB"], "keep_alive": ["on", "off"]}, 5, respond)
    ran = CliRunner().invoke(command, [str(tmp_path)], obj=ResultsFolders(), standalone_mode=False)
    assert ran.return_value == 4
    said = "There is one testbed: the levels of keep_alive are compared. --by FACTOR compares another: payload."
    assert said in " ".join(ran.output.split())
    assert "keep_alive off differs from keep_alive on" in ran.output
    result = compare.run(opened(tmp_path))
    assert result.by == "keep_alive" and {str(dict(each.cell)) for each in result.comparisons} == {
        "{'payload': '500B'}",
        "{'payload': '1MiB'}",
    }
    for style in ("html", "markdown"):
        text = rendered(style, opened(tmp_path), result).replace("\\_", "_")
        assert "the levels of keep_alive are compared" in text and "keep_alive off" in text
    asked = compare.run(opened(tmp_path), CompareParams(by="payload"))
    assert asked.about == "Levels of payload are compared." and asked.about in rendered("html", opened(tmp_path), asked)


@pytest.mark.parametrize(
    ("factors", "by"),
    [
        ({"payload": ["500B", "1MiB"]}, "testbed"),
        ({"workload.threads": [1, 10]}, "testbed"),
        ({"duration": ["10s", "90s"]}, "testbed"),
        ({"rate": ["100mbit", "1gbit"]}, "testbed"),
        ({"offload": ["on", "off"]}, "offload"),
        ({"keep_alive": [True, False]}, "keep_alive"),
        ({"nic": ["e1000", "virtio-net-pci"], "payload": ["500B", "1MiB"]}, "nic"),
        ({"switch": ["bridge", "ovs"], "connections": [1, 2], "duration": ["1s", "2s"]}, "switch"),
        ({"testbed.vcpus": [1, 2]}, "testbed.vcpus"),
        ({"nic": ["e1000", "virtio-net-pci"], "offload": ["on", "off"]}, "testbed"),
    ],
)
def test_switches_and_choices_are_compared_unasked_amounts_are_not(
    tmp_path: Path, factors: dict[str, list[Level]], by: str
) -> None:
    write_study(tmp_path, ["bed"], factors, 2, lambda *_: answer(1000.0, 1))
    chosen = compared_by(opened(tmp_path))
    assert chosen.by == by
    assert f"--by {next(iter(factors))} compares its levels" in chosen.reason or "--by FACTOR" in chosen.reason or by in factors
    assert (compare.run(opened(tmp_path)).comparisons != ()) is (by in factors)


def test_what_is_not_compared_unasked_is_named(tmp_path: Path) -> None:
    by_payload(tmp_path / "size", {"bed": 1.0})
    ran = CliRunner().invoke(command, [str(tmp_path / "size")], obj=ResultsFolders(), standalone_mode=False)
    assert ran.return_value == 5
    assert "only its load varies (payload): --by payload compares its levels." in " ".join(ran.output.split())
    respond = lambda testbed, levels, replicate: answer(1000.0 / levels["pairs"], replicate)  # noqa: E731
    write_study(tmp_path / "pairs", ["bed"], {"pairs": [1, 2]}, 3, respond)
    assert compare.run(opened(tmp_path / "pairs")).comparisons == ()
    assert compare.run(opened(tmp_path / "pairs")).about == "", "how many fit is said elsewhere"
    assert compare.run(opened(tmp_path / "pairs"), CompareParams(by="pairs")).comparisons


@pytest.mark.parametrize(
    ("params", "message", "advice"),
    [
        ({"by": "nonsense"}, "no factor 'nonsense' of two levels or more", "testbed, payload"),
        ({"by": "payload", "reference": "7B"}, "payload has no level '7B'", "500B, 20kB, 1MiB"),
        ({"by": "testbed", "reference": "other"}, "no testbed 'other'", "bed"),
    ],
)
def test_what_there_is_not_is_refused(tmp_path: Path, params: dict[str, str], message: str, advice: str) -> None:
    by_payload(tmp_path, {"bed": 1.0}, replicates=1)
    with pytest.raises(TwinbedError, match=message) as refused:
        compare.run(opened(tmp_path), CompareParams(**params))
    assert advice in refused.value.advice


def test_rows_say_which_factor_and_which_levels(tmp_path: Path) -> None:
    by_payload(tmp_path, {"bed": 1.0})
    table = twinbed.open(tmp_path).compare(by="payload", reference="1MiB", headlines=True)
    assert set(table["by"].to_pylist()) == {"payload"}
    assert set(zip(table["level"].to_pylist(), table["reference_level"].to_pylist(), strict=True)) == {
        ("500B", "1MiB"),
        ("20kB", "1MiB"),
    }
    ran = CliRunner().invoke(command, [str(tmp_path), "--by", "payload", "--format", "json"], obj=ResultsFolders())
    assert json.loads(ran.output)["by"] == "payload"


STUDY = """
study: levels
testbeds: {bed: {driver: fake, seed: 1}}
workload: {kind: planted, spread: 0.02}
instruments: []
factors: {workload.rate: [1000, 1040, 2000]}
replicates: 6
seed: 5
"""


def test_a_study_whose_truth_is_set(tmp_path: Path) -> None:
    """The fake driver answers with the rate that the workload asks for, so that ratios are 1.04 and 2."""
    (tmp_path / "study.yaml").write_text(STUDY)
    ran = carried_out("run", "study.yaml", "-o", "results", "--no-report", cwd=tmp_path)
    assert "--by workload.rate compares its levels" in " ".join(ran.stdout.split()), ran.stderr
    result: Comparisons = compare.run(opened(tmp_path / "results"), CompareParams(by="workload.rate"))
    near, far = [each for each in result.comparisons if each.metric == "requests_per_second"]
    assert near.ratio_interval is not None and near.ratio_interval.low < 1.04 < near.ratio_interval.high
    assert far.ratio_interval is not None and far.ratio_interval.low < 2 < far.ratio_interval.high
    assert (near.verdict, far.verdict) == (Verdict.EQUIVALENT, Verdict.DIFFERENT)
    assert near.paired and far.paired
