"""Reports whose paths say who sends, and which all say themselves that the client does: -R was forgotten."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from twinbed.cli.main import run
from twinbed.results.store import Store

REPORT = next((Path(__file__).parents[2] / "golden/formats/iperf3-json/tcp").glob("input.*")).read_text()
TEXT = "host: direction varies in paths, reverse is false in all 12 files"


def imported(tmp_path: Path, *, forgotten: bool) -> Path:
    """Two testbeds with the same rates but for noise, six runs each way; ``docker`` has its -R."""
    noise = random.Random(1)
    (tmp_path / "in").mkdir()
    for testbed in ("host", "docker"):
        for direction in ("send", "recv"):
            reverse = direction == "recv" and not (forgotten and testbed == "host")
            for replicate in range(1, 7):
                report = json.loads(REPORT)
                report["start"]["cookie"] = f"{testbed}{direction}{replicate}"
                report["start"]["test_start"]["reverse"] = int(reverse)
                factor = noise.gauss(1, 0.002)
                for interval in report["intervals"]:
                    for each in (*interval["streams"], interval["sum"]):
                        each["bytes"] = round(each["bytes"] * factor)
                        each["bits_per_second"] = each["bytes"] * 8 / each["seconds"]
                        if reverse:
                            each["sender"] = False
                (tmp_path / "in" / f"{testbed}_{direction}_{replicate}.txt").write_text(json.dumps(report))
    arguments = ["import", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--reference", "docker"]
    assert run([*arguments, "--pattern", "{testbed}_{direction}_{replicate:int}.txt"]) == 0
    return tmp_path / "out"


def test_what_the_files_contradict_is_named_and_goes_with_its_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = imported(tmp_path, forgotten=True)
    out = capsys.readouterr()
    assert TEXT in " ".join((out.out + out.err).split())
    run(["compare", str(results), "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert any(each["kind"] == "misnamed" and TEXT in each["detail"] for each in found["cautions"])
    levels = {record.id: (record.levels["testbed"], record.levels["direction"]) for record in Store.open(results).records}
    carried = {levels[row["run"]] for row in Store.open(results).table("cautions").to_pylist() if row["kind"] == "misnamed"}
    assert carried == {("host", "recv")}
    asked = {"anova": ["--response", "goodput"], "regression": ["--formula", "goodput ~ testbed * direction"]}
    for analysis, options in asked.items():
        run(["analyse", analysis, str(results), *options, "--format", "json"])
        assert TEXT in capsys.readouterr().out, analysis
    page = tmp_path / "page.html"
    assert run(["report", str(results), "-o", str(page)]) == 0
    text = page.read_text()
    assert TEXT in text and "No verdict in 1 of 2 headline comparisons, because files contradict what their paths say" in text
    assert "Goodput matches at direction send." in text
    [summary] = found["summary"]
    assert (summary["verdict"], summary["equivalent"], summary["inconclusive"]) == ("inconclusive", 1, 1)
    [named] = [row for row in found["comparisons"] if row["headline"] and row["verdict"] == "inconclusive"]
    assert named["factor:direction"] == "recv" and named["because"] == "files contradict what their paths say"


def test_files_that_say_what_their_paths_say_are_not_doubted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = imported(tmp_path, forgotten=False)
    assert run(["report", str(results), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text()
    assert "varies in paths" not in capsys.readouterr().out + text and "no verdict" not in text
