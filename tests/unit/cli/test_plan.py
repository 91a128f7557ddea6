"""The command line: quick help, exit codes, messages; and ``twinbed plan``."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from twinbed import registry
from twinbed.cli import main
from twinbed.model.error import TwinbedError
from twinbed.model.units import parse_size
from twinbed.render import rows as output
from twinbed.study.catalogue import Catalogue

STUDY = """
study: small
testbeds: {c: {driver: container}, vm: {driver: qemu}}
topology: {link: {rate: 1gbit}}
workload: {kind: http, duration: 5s}
factors: {testbed: [c, vm], payload: [500B, 1MiB]}
instruments: [packets]
replicates: 2
seed: 1
"""


@pytest.fixture(autouse=True)
def made_up_plugins(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue) -> None:
    monkeypatch.setattr(registry, "catalogue", lambda: catalogue)
    monkeypatch.setattr("twinbed.lab.needs._stages", lambda runs, plugins, builds: {})  # the machine is no matter here


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(STUDY)
    return path


def test_plan_says_what_will_be_done(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", str(study_file)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    # c takes 0.5 s and vm the default 5 s around 5 s: 2 x 2 x (5.5 + 10) = 62 s.
    # 1 Gbit/s both ways is 250000 packets/s of 1000 bytes; 128 + 16 bytes are kept on 2 links for 5 s.
    # In 8 runs that is 2.88 GB.
    assert lines[0] == "small: 4 cells x 2 replicates = 8 runs, about 1 min 2 s, at most 2.9 GB"
    assert "reference   c (the first testbed listed); the others are compared with it" in lines
    assert "margin      10%: a smaller difference counts as equivalent" in lines
    assert "order       randomized-blocks, seed 1" in lines
    assert [line.split()[1:3] for line in lines if line.lstrip()[:1].isdigit()] == [
        ["c", "500B"],
        ["c", "1MiB"],
        ["vm", "500B"],
        ["vm", "1MiB"],
    ]
    orders = [line.split(": ")[1].split() for line in lines if line.startswith("block")]
    assert [sorted(order) for order in orders] == [["1", "2", "3", "4"]] * 2


def test_plan_says_what_is_kept_of_its_disk(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", str(study_file)]) == 0
    assert "keep  " not in capsys.readouterr().out
    study_file.write_text(f"{STUDY}keep: tables\n")
    assert main.run(["plan", str(study_file)]) == 0
    of_runs = re.findall(r"(?:500B|1MiB) .* (\S+ [kMG]?B)\n", text := capsys.readouterr().out)
    assert len(of_runs) == 4
    largest = max(of_runs, key=parse_size)
    assert f"keep        tables: other artifacts are deleted after each run, which takes at most {largest}\n" in text


def test_plan_folds_what_is_long(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    override = f"factors.payload={list(range(1, 31))}"
    assert main.run(["plan", str(study_file), "-s", override, "-s", "replicates=10"]) == 0
    text = capsys.readouterr().out
    assert "... and 40 more\n" in text
    assert "... and 7 more blocks" in text


def test_plan_as_json_has_the_study_and_every_run(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", str(study_file), "--format", "json", "-s", "replicates=3"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["study"], data["replicates"], data["reference"], data["seed"]) == ("small", 3, "c", 1)
    assert len(data["runs"]) == 12
    assert [run["position"] for run in data["runs"]] == list(range(12))
    assert data["runs"][0]["levels"].keys() == {"testbed", "payload"}
    assert data["estimate"] == {"seconds": 93.0, "bytes_at_most": 12 * 360_000_000}


def test_plan_as_csv_is_the_order(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["plan", str(study_file), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["position", "block", "replicate", "run", "cell", "testbed", "payload"]
    assert len({row["run"] for row in rows}) == 8
    assert len({row["cell"] for row in rows}) == 4


def test_a_wrong_study_is_two_and_on_standard_error(study_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study_file.write_text(STUDY.replace("container}", "containr}").replace("payload:", "paylod:"))
    assert main.run(["plan", str(study_file), "-s", "replicates=0"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0].startswith(f"{study_file}:3:24: testbeds.c.driver: 'containr' is not known; ")
    assert lines[0].endswith("did you mean 'container'?")
    assert lines[1].startswith(f"{study_file}:6:29: factors.paylod: ")
    assert lines[2].startswith("-s:1:12: replicates: 0 is not allowed")
    assert lines[3].startswith("3 problems")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_two(content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    assert main.run(["plan", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["plna"], ["plan"], ["plan", "x", "--fromat", "json"], ["--nonsense"]])
def test_wrong_usage_is_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 2
    assert "rror: " in capsys.readouterr().err


def test_a_misspelt_command_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["plna"])
    assert "Did you mean 'plan'?" in capsys.readouterr().err


def test_errors_have_their_own_code_and_advice(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(**_: object) -> None:
        raise TwinbedError("no kvm", exit_code=3, advice="modprobe kvm")

    monkeypatch.setattr(main.cli, "main", fail)
    assert main.run([]) == 3
    assert capsys.readouterr().err == "twinbed: no kvm\n  modprobe kvm\n"


@pytest.mark.parametrize(("raised", "code"), [(click.Abort(), 130), (KeyboardInterrupt(), 130), (click.FileError("f"), 2)])
def test_interrupts_and_usage_have_their_codes(raised: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise raised

    monkeypatch.setattr(main.cli, "main", fail)
    assert main.run([]) == code


@pytest.mark.parametrize("code", [0, 1, 4, 5])
def test_a_commands_code_is_handed_on(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main.cli, "main", lambda **_: code)
    assert main.run([]) == code


def test_help_lists_every_command_and_imports_no_library_for_it() -> None:
    program = "import sys; from twinbed.cli.main import run; run(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    for name, lazy in main.COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert lazy.help in done.stdout
    for library in ("pydantic", "pyarrow", "scipy", "numpy", "rich", "ruamel.yaml", "duckdb"):
        assert f"'{library}'" not in done.stderr


@pytest.mark.parametrize("name", ["plan"])
def test_commands_are_where_the_table_says(name: str) -> None:
    lazy = main.COMMANDS[name]
    command = getattr(importlib.import_module(lazy.module), lazy.attribute)
    assert isinstance(command, click.Command)
    assert command.name == name


ROWS = [{"name": "a", "count": 1, "rate": 2.5, "ok": True}, {"name": "long name", "count": 10, "rate": None, "ok": False}]


def test_text_tables_are_aligned() -> None:
    assert output.as_text(ROWS).splitlines() == [
        "name       count  rate  ok",
        "a              1   2.5  true",
        "long name     10        false",
    ]
    assert output.as_text([]) == ""


def test_csv_quotes_and_leaves_missing_empty() -> None:
    assert output.as_csv([{"a": 'say "x", y', "b": None}]) == 'a,b\n"say ""x"", y",\n'
    assert output.as_csv([]) == ""


def test_json_keeps_null_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(ROWS, "json")
    assert json.loads(capsys.readouterr().out) == ROWS


def test_a_terminal_gets_every_cell_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    output.print_table(ROWS, title="Things")
    text = capsys.readouterr().out
    for word in ("Things", "long name", "2.5", "true"):
        assert word in text
