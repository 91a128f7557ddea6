"""`twinbed publish`, and commands that are given an address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import twinbed
from synthetic_results import planted_response, write_study
from twinbed.cli.main import run

RATIOS = {"physical": 1.0, "slow": 0.5}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_study(tmp_path / "study", list(RATIOS), {}, 5, planted_response(RATIOS, 0.01, seed=3))


@pytest.fixture
def address(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    address = f"file://{folder.parent / 'bucket'}"
    assert run(["publish", str(folder), address]) == 0
    assert capsys.readouterr().out.startswith(f"{address}: 10 runs added, 10 in all (snapshot 1); ")
    return address


def test_a_command_says_the_same_of_the_address(folder: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["compare", "--all"], ["analyse", "steady"], ["passport"]):
        said = []
        for where in (str(folder), address):
            code = run([*command, where])
            captured = capsys.readouterr()
            said.append((code, captured.out.replace(where, "R"), captured.err.replace(where, "R")))
        assert said[0] == said[1], command


def test_the_page_is_the_same(folder: Path, address: str) -> None:
    assert run(["report", str(folder)]) == 0
    assert run(["report", address]) == 0
    page = (folder.parent / "bucket-report.html").read_text()
    assert page == (folder / "report.html").read_text()


def test_in_python(folder: Path, address: str) -> None:
    here, there = twinbed.open(folder), twinbed.open(address)
    assert repr(there) == repr(here)
    assert there.tables() == here.tables()
    assert there.table("metrics").num_rows == here.table("metrics").num_rows


def test_again_in_json(folder: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["publish", str(folder), address, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert {**result, "bytes": 0} == {"published": address, "snapshot": 1, "runs": 10, "added": 0, "bytes": 0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["publish", "{folder}", "bucket"], "bucket is not an address"),
        (["publish", "{address}", "file:///tmp/x"], "{address} is published already"),
        (["archive", "{address}"], "{address} is in a bucket"),
        (["merge", "{address}", "{folder}", "-o", "both"], "bucket has no artifacts"),
        (["run", "quickstart", "-o", "s3://bucket/x"], "s3://bucket/x: results can only be made in a folder"),
        (["compare", "file:///nothing/there"], "file:///nothing/there: "),
        (["calibrate", "{address}", "--from", "slow", "--to", "physical"], ""),
    ],
)
def test_what_an_address_is_not(
    folder: Path, address: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    before = {path.name for path in folder.parent.iterdir()}
    assert run([each.format(folder=folder, address=address) for each in arguments]) == 2
    assert said.format(folder=folder, address=address) in capsys.readouterr().err
    assert {path.name for path in folder.parent.iterdir()} == before, "no folder that is named like an address"
