"""`twinbed calibrate` and `predict` on results whose truth is known, and what they refuse."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.calibration_results import write_calibrated
from tests.command import twinbed
from tests.synthetic_results import planted_response, write_study

from twinbed import registry
from twinbed.analyses.calibrate.result import Calibrated
from twinbed.analyses.calibrate.saved import read
from twinbed.cli.main import run
from twinbed.contracts import exit_codes as codes
from twinbed.model.caution import Caution, Kind
from twinbed.study.loading import load

SMALL: Any = {"payloads": 8, "expensive": 6, "threads": (1, 4)}
KEPT = "calibrations/virtio-physical.json"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, *_ = write_calibrated(tmp_path_factory.mktemp("calibrated") / "results")
    return folder


def table(results: Path) -> list[dict[str, str]]:
    done = twinbed("calibrate", results, "--format", "csv")
    assert done.returncode == codes.DONE, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.fixture(scope="module")
def rows(results: Path) -> list[dict[str, str]]:
    """What `twinbed calibrate` says of the results, once it has kept the calibration beside them."""
    return table(results)


def test_the_truth_lies_in_the_intervals(tmp_path: Path) -> None:
    """Of the payloads that the expensive testbed was not measured at, over three studies, in 90 % and more."""
    held = []
    for seed in (1, 2, 3):
        folder, world, levels = write_calibrated(tmp_path / str(seed), seed=seed)
        said = table(folder)
        for row in said:
            if row["dear"] == "" and row["value"]:
                place = np.array([math.log(float(row["payload"][:-1]))]), np.array([float(row["threads"])])
                truth = math.exp(float(world.expensive(*place)[0]))
                held.append(float(row["low"]) <= truth <= float(row["high"]))
        assert {row["payload"] for row in said} == set(levels)
    assert len(held) > 40 and sum(held) / len(held) >= 0.9


def test_a_file_says_what_it_said_when_it_was_made(results: Path, rows: list[dict[str, str]]) -> None:
    found, remarks = read(results / KEPT)
    assert remarks == [] and (found.cheap, found.expensive) == ("virtio", "physical")
    again = found.responses[0].cells
    assert [str(each.levels["payload"]) for each in again] == [row["payload"] for row in rows]
    for each, row in zip(again, rows, strict=True):
        assert (each.value is None) == (row["value"] == "")
        if each.value is not None:
            assert each.value == pytest.approx(float(row["value"]), rel=1e-9)


@pytest.mark.usefixtures("rows")
def test_predict_says_the_mean_and_one_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for more in ([], ["--one-run"]):
        assert (
            run(["predict", str(results / KEPT), "--payload", "64KiB", "--threads=3", *more, "--format", "json"]) == codes.DONE
        )
        said.append(json.loads(capsys.readouterr().out)["predictions"][0])
    assert said[0]["value"] == said[1]["value"]
    assert said[1]["low"] < said[0]["low"] < said[0]["value"] < said[0]["high"] < said[1]["high"]


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--payload", "64KiB"], "the prediction needs a level of threads"),
        (["--payload", "64KiB", "--thread", "3"], "the calibration has no factor thread"),
        (["--payload", "64 kisses", "--threads", "3"], "64 kisses, which is not a number"),
        (["--payload", "3", "--threads", "3"], "give it in bytes"),
        (["--payload"], "'--payload' is not --FACTOR LEVEL"),
        (["--payload", "64KiB", "--threads", "3", "--response", "loss"], "the calibration has no response loss"),
        ([], "predict needs either levels or --with RESULTS"),
    ],
)
def test_what_cannot_be_asked(results: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", str(results / KEPT), *arguments]) == codes.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("rows")
def test_outside_nothing_is_said(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", str(results / KEPT), "--payload", "64MiB", "--threads", "3"]) == codes.INCONCLUSIVE
    assert "cannot predict physical: outside the measured range" in capsys.readouterr().out


@pytest.mark.usefixtures("rows")
def test_a_changed_file_is_refused(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads((results / KEPT).read_text())
    data["responses"][0]["to"]["values"][0] *= 2
    changed = tmp_path / "changed.json"
    for text, said in (
        (json.dumps(data), "was changed after it was written"),
        ("{}", "is not a calibration"),
        ("[", "is not a calibration"),
    ):
        changed.write_text(text)
        assert run(["predict", str(changed), "--payload", "64KiB", "--threads", "3"]) == codes.USAGE
        assert said in capsys.readouterr().err
    assert run(["predict", str(tmp_path / "none.json"), "--payload", "64KiB"]) == codes.USAGE
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.usefixtures("rows")
def test_new_results_are_predicted_where_the_passport_is_the_same(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_calibrated(tmp_path / "same", seed=1)
    assert run(["predict", str(results / KEPT), "--with", str(tmp_path / "same"), "--format", "json"]) == codes.DONE
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert len(rows) == 48 and all(row["cheap"] > 0 for row in rows)
    other = {"virtio": {"client": {"kernel": "6.18.0"}}, "physical": {"client": {"kernel": "6.9.0"}}}
    write_calibrated(tmp_path / "other", passports=other, **SMALL)
    assert run(["predict", str(results / KEPT), "--with", str(tmp_path / "other")]) == codes.USAGE
    assert "client: kernel is 6.18.0, was 6.1.0" in capsys.readouterr().err


def test_an_emulated_cpu_disqualifies_unless_both_have_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emulated = [Caution(Kind.SOFTWARE_CPU, "TCG")]
    write_calibrated(tmp_path / "one", cautions={"virtio": emulated})
    assert run(["calibrate", str(tmp_path / "one")]) == codes.USAGE
    said = capsys.readouterr().err
    assert "guests ran on an emulated CPU" in said and "--despite software_cpu" in said
    assert not (tmp_path / "one" / "calibrations").exists()
    assert run(["calibrate", str(tmp_path / "one"), "--despite", "software_cpu"]) == codes.DONE
    capsys.readouterr()
    assert run(["predict", str(tmp_path / "one" / KEPT), "--payload", "64KiB", "--threads", "3"]) == codes.DONE
    assert "Made despite software_cpu" in capsys.readouterr().out
    write_calibrated(tmp_path / "both", cautions={"virtio": emulated, "physical": emulated}, **SMALL)
    assert run(["calibrate", str(tmp_path / "both")]) == codes.DONE


def test_levels_that_nobody_drew_have_the_process_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_calibrated(tmp_path / "results", is_drawn=False, payloads=24, expensive=20, threads=(1,), replicates=(2, 2))
    assert run(["calibrate", str(tmp_path / "results")]) == codes.DONE
    assert "need 19 random levels of payload for 95 %, and none was drawn at random" in capsys.readouterr().out
    assert run(["calibrate", str(tmp_path / "results"), "--random", "payload"]) == codes.DONE
    assert "Intervals are conformal, from 20 levels of payload drawn at random" in capsys.readouterr().out
    assert run(["calibrate", str(tmp_path / "results"), "--random", "testbed"]) == codes.USAGE


def test_next_ends_in_a_study_that_adds_to_the_random_ones(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "next.yaml"
    assert run(["calibrate", str(results), "--next", "3", "--study", str(study)]) == codes.DONE
    said = capsys.readouterr().out
    assert f"Next: twinbed run {study} -o {results}" in said
    text = study.read_text()
    assert "# cheap" in text, "comments stay"
    data = json.loads((results / "study.json").read_text())
    left = data["factors"]["payload"][8:]
    also = text.partition("also: [")[2].partition("]")[0].split(", ")
    assert len(also) == 3 and set(also) <= set(left)
    widths = [float(line.rpartition("±")[2].removesuffix(" %")) for line in said.splitlines() if line.startswith("  payload ")]
    assert widths == sorted(widths, reverse=True)
    assert run(["calibrate", str(results), "--next", "3", "--until", "90%", "--study", str(study)]) == codes.DONE
    assert "Nothing to measure" in capsys.readouterr().out


def test_a_study_may_add_levels_to_random_ones() -> None:
    text = """
study: drawn
testbeds:
  virtio: {driver: fake}
  physical: {driver: fake, only: {payload: {random: 2, also: [%s]}}}
workload: {kind: http}
factors: {testbed: [virtio, physical], payload: {log_uniform: [500B, 16MiB], samples: 8}}
"""
    catalogue = registry.catalogue()
    plain = load(text.replace(", also: [%s]", ""), "drawn.yaml", catalogue)
    levels = plain.factors["payload"]
    study = load(text % levels[5], "drawn.yaml", catalogue)
    there = {cell.levels["payload"] for cell in study.cells if cell.testbed_name == "physical"}
    assert there == {*levels[:2], levels[5]}
    assert study.drawn["physical"]["payload"] == levels[:2]
    assert study.drawn["virtio"]["payload"] == levels
    assert study.to_json()["drawn"]["physical"] == {"payload": list(levels[:2])}  # type: ignore[index]


def test_compare_says_what_is_predictable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And no more once there are other runs than those that the calibration is of."""
    folder, *_ = write_calibrated(tmp_path / "results", replicates=(8, 8), threads=(1,))

    def compared() -> list[dict[str, Any]]:
        capsys.readouterr()
        run(["compare", str(folder), "--format", "json"])
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["comparisons"]
        return [row for row in rows if row["metric"] == "requests_per_second" and row["verdict"] == "different"]

    before = compared()
    assert before and all(row["predictable"] is None for row in before)
    assert run(["calibrate", str(folder)]) == codes.DONE
    different = compared()
    assert any(row["predictable"] is not None for row in different)
    for row in different:
        if row["predictable"] is not None:
            assert "but predictable: ±" in row["because"] and row["predictable"] < 0.3
    run(["compare", str(folder), "--all"])
    assert "predictable to ±" in " ".join(capsys.readouterr().out.split())
    page = tmp_path / "report.html"
    run(["report", str(folder), "-o", str(page)])
    assert "Different, but predictable: after calibration virtio predicts requests per second of physical" in page.read_text()
    data = json.loads((folder / KEPT).read_text())
    data["runs"] = "others"
    (folder / KEPT).write_text(json.dumps(data))
    assert all(row["predictable"] is None for row in compared())


def test_the_page_has_curves_and_what_was_left_out(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "calibration.html"
    assert run(["calibrate", str(results), "-o", str(page)]) == codes.DONE
    text = page.read_text()
    for words in (
        "Every payload left out once",
        "Requests per second at threads 4",
        "A logistic over ln payload",
        "kernel 6.9.0",
    ):
        assert words in text
    assert text.count("<svg ") == 5, "ratios, three numbers of threads, what was left out"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "none"], "has no testbed 'none'"),
        (["--from", "physical"], "cannot be calibrated to itself"),
        (["--response", "none"], "has no metric 'none'"),
        (["--despite", "stall"], "'stall' never prevents a calibration"),
        (["--level", "much"], "much"),
    ],
)
def test_bad_arguments(results: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", str(results), *arguments]) == codes.USAGE
    assert said in capsys.readouterr().err


def test_results_without_a_number_that_varies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_study(tmp_path, ["a", "b"], {"nic": ["one", "other"]}, 3, planted_response({"a": 1, "b": 2}, 0.02, 1))
    assert run(["calibrate", str(tmp_path)]) == codes.USAGE
    assert "no factor is a number that varies" in capsys.readouterr().err


@pytest.mark.usefixtures("rows")
def test_areas_are_between_what_was_measured_on_both(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And against another testbed: of one that is the expensive one itself, the difference is the whole area."""
    found, _ = read(results / KEPT)
    each = found.responses[0]
    assert each.area is not None and each.area.payloads == 8 and each.area.value > 0.1
    same = Calibrated(each.fitted, {"itself": each.fitted.expensive, "virtio again": each.fitted.cheap})
    assert same.distances["itself"].value == pytest.approx(each.area.value)
    assert same.distances["virtio again"].value == pytest.approx(0.0)
    assert run(["calibrate", str(results)]) == codes.DONE
    assert f"The area between both curves over ln payload is {each.area.value:.2g} (" in capsys.readouterr().out
