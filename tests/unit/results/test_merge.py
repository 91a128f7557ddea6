"""Several results as one: on planted results whose numbers are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import twinbed as tb
from synthetic_results import planted_response, write_study
from twinbed.cli.main import run
from twinbed.model.linkcheck import LinkCheck
from twinbed.results.store import Store


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(
    name: str, ratios: Mapping[str, float], factors: Mapping[str, Sequence[Any]], replicates: int = 4, **rest: Any
) -> Path:
    return write_study(Path(name), list(ratios), factors, replicates, planted_response(ratios, 0.02, len(name)), **rest)


def verdicts(path: str) -> dict[tuple[str, ...], str]:
    opened = tb.open(path)
    rows = [row for row in opened.compare().to_pylist() if row["metric"] == "requests_per_second"]
    factors = sorted(opened.column_of(factor) for factor in opened.factors)
    return {(row["testbed"], *(str(row[factor]) for factor in factors)): row["verdict"] for row in rows}


def test_testbeds_of_two_results_stand_side_by_side(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study("old", {"physical": 1.0}, {"payload": ["500B", "1MiB"]}, 6)
    study("new", {"container": 1.0, "virtio": 0.7}, {"payload": ["500B", "1MiB"]}, 4)
    assert run(["merge", "old", "new", "-o", "both"]) == 0
    said = capsys.readouterr().out
    assert "physical (reference)  old     12      2" in said
    assert verdicts("both") == {
        ("container", "500B"): "equivalent",
        ("container", "1MiB"): "equivalent",
        ("virtio", "500B"): "different",
        ("virtio", "1MiB"): "different",
    }
    made = Store.open(Path("both"))
    assert len(made.records) == 28 and not made.missing() and not made.cautions
    one = next(Path("both/runs").glob("*/artifacts/client/planted.json"))
    assert one.stat().st_nlink == 2, "artifacts are linked"
    assert len(list(Path("old/runs").iterdir())) == 12, "the sources stay"
    assert run(["report", "both"]) == 0
    page = Path("both/report.html").read_text()
    assert "twinbed merge old new -o both" in page
    assert "12 runs of physical" in page


def test_the_same_again_brings_the_folder_up_to_date(there: Path) -> None:
    study("a", {"physical": 1.0}, {}, 3)
    study("b", {"virtio": 1.0}, {}, 3)
    assert run(["merge", "a", "b", "-o", "both"]) == 0
    before = {record.id for record in Store.open(Path("both")).records}
    study("c", {"virtio": 1.0}, {}, 5)
    for new in sorted(Path("c/runs").iterdir()):
        if not (Path("b/runs") / new.name).exists():
            new.rename(Path("b/runs") / new.name)
    Path("c/study.json").rename("b/study.json")
    assert run(["merge", "a", "b", "-o", "both"]) == 0
    after = {record.id for record in Store.open(Path("both")).records}
    assert before < after and len(after) == 8


def test_sources_that_may_only_be_read(there: Path) -> None:
    for name in ("a", "b"):
        for folder, _, _ in os.walk(study(name, {name: 1.0}, {}), topdown=False):
            Path(folder).chmod(0o555)
    for _ in range(2):
        assert run(["merge", "a", "b", "-o", "both"]) == 0
    assert all(Path(folder).stat().st_mode & 0o200 for folder, _, _ in os.walk("both")), "the folder can be written and removed"
    assert verdicts("both") == {("b",): "equivalent"}
    for name in ("a", "b"):
        for folder, _, _ in os.walk(name):
            Path(folder).chmod(0o755)


def test_sources_of_one_name_are_told_apart(there: Path) -> None:
    for name in ("x/a", "y/a", "a-2"):
        study(name, {"physical": 1.0}, {}, 2)
    assert run(["merge", "x/a", "y/a", "a-2", "-o", "both"]) == 0
    made = Store.open(Path("both"))
    assert len(made.records) == 6 and len(made.outline.testbeds) == 3


def test_what_is_said_does_not_depend_on_the_order_of_sets(there: Path) -> None:
    """Python's hash of text differs from process to process; the report of the same results does not."""
    for name in ("a", "b"):
        study(name, {name: 1.0}, {}, passport={host: {"kernel": name} for host in ("client1", "client2", "server1", "server2")})
    assert run(["merge", "a", "b", "-o", "both"]) == 0
    assert run(["compare", "both"]) == 0
    command = [sys.executable, "-m", "twinbed.cli.main", "compare", "both", "--all"]
    said = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert "client1: kernel is a on a, b on b" in said.pop()


def test_one_testbed_of_two_results(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study("a", {"physical": 1.0, "e1000": 1.0}, {}, 3)
    study("b", {"e1000": 0.5}, {}, 4)
    assert run(["merge", "a", "b", "-o", "apart"]) == 0
    assert set(Store.open(Path("apart")).outline.testbeds) == {"physical", "e1000@a", "e1000@b"}
    assert verdicts("apart") == {("e1000@a",): "equivalent", ("e1000@b",): "different"}
    assert run(["merge", "a", "b", "-o", "pooled", "--rename", "b:e1000=e1000", "--rename", "a:e1000=e1000"]) == 0
    assert "the testbed e1000 is in a and b: its replicates are renumbered" in capsys.readouterr().out
    records = [record for record in Store.open(Path("pooled")).records if record.settings["testbed"]["name"] == "e1000"]
    assert sorted(record.replicate for record in records) == [0, 1, 2, 3, 4, 5, 6]


def test_levels_that_mean_the_same_are_written_the_same(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study("text", {"physical": 1.0}, {"payload": ["500B"], "threads": [1]})
    study("number", {"virtio": 1.0}, {"payload": [500], "threads": ["1"]})
    assert run(["merge", "text", "number", "-o", "both"]) == 0
    assert verdicts("both") == {("virtio", "500B", "1"): "equivalent"}
    study("other", {"e1000": 1.0}, {"threads": [1], "payload": [500]})
    assert run(["merge", "other", "text", "-o", "turned"]) == 0
    assert tb.open("turned").factors == ("threads", "payload"), "as the first source has them"


def test_a_factor_that_one_lacks(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study("varied", {"physical": 1.0}, {"seconds": [0.0], "payload": ["500B"]})
    study("fixed", {"virtio": 1.0}, {})
    assert run(["merge", "varied", "fixed", "-o", "both", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "fixed: seconds is 0, from its runs' settings" in said
    assert "fixed does not have payload: give it with --level" in said
    assert not Path("both").exists()
    assert run(["merge", "varied", "fixed", "-o", "both", "--level", "fixed:payload=500B"]) == 0
    assert verdicts("both") == {("virtio", "500B", "0"): "equivalent"}


def test_what_differs_and_is_no_factor_is_a_doubt(there: Path) -> None:
    study("a", {"physical": 1.0}, {}, passport={"client": {"kernel": "5.4", "NIC driver": "ixgbe"}}, workload={"seconds": 9.0})
    study("b", {"virtio": 1.0}, {}, passport={"client": {"kernel": "6.1", "NIC driver": "virtio_net"}})
    assert run(["merge", "a", "b", "-o", "both"]) == 0
    doubts = [row["cautions"].split(" | ") for row in tb.open("both").compare().to_pylist()]
    residues = {" | ".join(each for each in of_row if each.startswith("residue(")) for of_row in doubts}
    assert len(residues) == 1
    (text,) = residues
    assert "residue(virtio: client: kernel is 5.4 on physical, 6.1 on virtio)" in text
    assert "residue(virtio: setting workload.seconds is 0.0 on virtio, 9.0 on physical)" in text
    assert "NIC driver" not in text, "that is what the testbeds are"


def test_cells_that_the_reference_lacks_stand_alone(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study("a", {"physical": 1.0}, {"payload": ["500B"]}, 5)
    study("b", {"virtio": 1.0}, {"payload": ["500B", "1MiB"]}, 5)
    assert run(["merge", "a", "b", "-o", "both"]) == 0
    assert run(["compare", "both"]) == 0, "no verdict is about what was not measured"
    said = capsys.readouterr().out
    assert "some cells were not measured on the reference" in said.lower()
    assert "1 of 2 cells: payload 1MiB" in said
    assert verdicts("both")["virtio", "1MiB"] == "inconclusive"


def test_link_checks_come_along(there: Path) -> None:
    for name in ("a", "b"):
        folder = study(name, {name: 1.0}, {})
        record = Store.open(folder).records[0]
        (folder / "links").mkdir()
        check = LinkCheck(record.cell, record.id, {}, ())
        (folder / "links" / f"{check.cell}.json").write_text(json.dumps(check.to_json()))
    assert run(["merge", "a", "b", "-o", "both"]) == 0
    made = Store.open(Path("both"))
    assert {check.cell for check in made.link_checks} == {record.cell for record in made.records if record.replicate == 0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a", "-o", "c"], "two or more RESULTS"),
        (["a", "b", "-o", "a"], "a is one of the RESULTS"),
        (["a", "b", "-o", "other"], "is not the result of a merge"),
        (["a", "b", "-o", "c", "--reference", "x"], "the reference 'x' is not a testbed"),
        (["a", "b", "-o", "c", "--rename", "a:x=y"], "a has no testbed 'x'"),
        (["a", "b", "-o", "c", "--rename", "z:x=y"], "is not of the form RESULTS:NAME=TEXT"),
        (["a", "b", "-o", "c", "--level", "a:x"], "is not of the form RESULTS:NAME=TEXT"),
        (["a", "empty", "-o", "c"], "empty has no runs"),
    ],
)
def test_refusals(there: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    study("a", {"physical": 1.0}, {}, 1)
    study("b", {"virtio": 1.0}, {}, 1)
    Path("other").mkdir()
    Path("other/study.json").write_text("{}")
    Path("empty/runs").mkdir(parents=True)
    assert run(["merge", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not Path("c").exists()
    assert Path("other/study.json").read_text() == "{}"
