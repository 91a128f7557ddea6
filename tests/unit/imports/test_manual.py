"""Every command of docs/import.md, with the files that it tells of."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.iperf3_corpus import real_reports, write

from twinbed.cli.main import run

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "import.md").read_text()
GOLDEN = ROOT / "tests" / "golden" / "formats"


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
    return [text for kind, text in fenced if kind == language]


def commands() -> list[str]:
    found = [line for block in blocks("") for line in block.splitlines() if line.startswith("twinbed ")]
    assert len(found) == 10
    return found


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "iperf", real_reports([1, 10]), replicates=5, every=(29, 100, 31))
    (ab,) = (GOLDEN / "ab-text" / "plain").glob("input*")
    for testbed in ("physical", "kvm"):
        for number in (1, 2):
            below = tmp_path / "web" / testbed / f"run{number}"
            below.mkdir(parents=True)
            (below / "ab.txt").write_bytes(ab.read_bytes().replace(b"Server Port:", b"Server Port: " + b" " * number))
    for cell in ("kvm-e1000-1-on-1000-10-1-http16MB-instr/3/que4711", "physical-1g-on-10-http16MB-instr/3"):
        (tmp_path / "que" / cell / "client").mkdir(parents=True)
        shutil.copy(ab, tmp_path / "que" / cell / "client" / "ab.out")
    (tmp_path / "tables").mkdir()
    for name, rates in (("physical-500", ("937,5", "912,25")), ("kvm-500", ("901", "930,5"))):
        rows = "".join(f"host;{rate};0,25;6.1.0\n" for rate in rates)
        (tmp_path / "tables" / f"{name}.csv").write_text(f"peer;rate;delay;kernel\n{rows}")
    passport, tables, all_runs = blocks("yaml")
    (tmp_path / "passport.yaml").write_text(passport)
    (tmp_path / "tables.yaml").write_text(tables)
    (tmp_path / "runs.yaml").write_text(all_runs)
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "runs.csv").write_text(next(block for block in blocks("") if block.startswith("bed,payload")))
    (tmp_path / "files.csv").write_text(next(block for block in blocks("") if block.startswith("path,testbed")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_does_what_is_said(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = {}
    for command in commands():
        codes[command] = run(shlex.split(command)[1:])
    first, dry, iperf, compared, *rest = codes
    # Proposed, looked at and imported with two files that cannot be read, compared: different.
    assert [codes[command] for command in (first, dry, iperf, compared)] == [2, 1, 1, 4]
    others = {command.split(" -o results/")[1].split()[0]: codes[command] for command in rest}
    assert others == {"web": 0, "described": 1, "listed": 0, "tables": 0, "all": 1, "que": 0}
    said = capsys.readouterr()
    assert "--pattern '{testbed}_srv_{direction}_parallel-{parallel:int}_{replicate:int}.txt'" in said.err
    assert "57 files read, 1 partly read, 2 refused, 2 copies of others, 0 ignored" in said.out
    assert "60 runs added to results/iperf, 2 of them failed" in said.out
    assert next(block for block in blocks("") if block.startswith("partly read (1)")) in said.out
    for name in ("iperf", "web", "described", "listed", "tables", "all", "que"):
        assert run(["report", f"results/{name}", "-o", f"{name}.html"]) == 0
    assert "ixgbe" in Path("described.html").read_text()
    assert "frames shown in a second" in Path("tables.html").read_text()
