"""`twinbed run` of a finished study: what is not done again, and what makes it be done again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import twinbed
from twinbed.cli import conclusion, run_study
from twinbed.cli.conclusion import made_of
from twinbed.cli.main import run
from twinbed.report import styles

STUDY = """
study: finished
testbeds:
  a: {driver: fake, seed: 1}
  b: {driver: fake, seed: 2}
workload: {kind: planted}
instruments: []
factors: {testbed: [a, b]}
replicates: 3
"""


class Finished:
    """A study that has run once, and how often sections of a page are made from now on."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        self.results = folder / "results" / "finished"
        self.page = self.results / "report.html"
        Path("finished.yaml").write_text(STUDY)
        assert run(["run", "finished.yaml"]) == 0
        self.made = 0

        def counted(tables: styles.Tables) -> tuple[styles.Section, ...]:
            """Nothing is on the pages from now on: only how many there are is of interest."""
            self.made += 1
            return ()

        monkeypatch.setattr(styles, "sections", counted)

    def again(self, *options: str) -> int:
        """How many pages the same command made."""
        before = self.made
        assert run(["run", "finished.yaml", *options]) == 0
        return self.made - before


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Finished:
    study = Finished(tmp_path, monkeypatch)
    capsys.readouterr()
    return study


def test_nothing_is_made_again(finished: Finished, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be compared")

    run(["compare", str(finished.results), "--quiet"])
    verdict = capsys.readouterr().out
    was = finished.page.read_bytes(), finished.page.stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(run_study, "_compare", refused)
        assert finished.again() == 0
    assert (finished.page.read_bytes(), finished.page.stat().st_mtime_ns) == was
    shown = capsys.readouterr()
    assert shown.out == verdict, "as `compare` says it"
    assert "Nothing to do: 6 of 6 runs are complete" in shown.err
    assert "Report: results/finished/report.html" in shown.err
    assert finished.again("--no-report") == 0


def test_what_changes_a_page_makes_it_again(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes one page, and the next command none."""

    def settled() -> bool:
        return (finished.again(), finished.again()) == (1, 0)

    finished.page.unlink()
    assert settled(), "a page that is gone"
    finished.page.write_text("another")
    assert settled(), "a page that somebody else wrote"
    assert finished.again("-s", "margin=50%") == 1, "another margin"
    assert settled(), "the old margin"
    record = next((finished.results / "runs").glob("*/run.json"))
    data = json.loads(record.read_bytes())
    data["levels"]["replicate_note"] = "changed"
    record.write_text(json.dumps(data))
    assert settled(), "a run's record"
    artifact = next(path for path in (finished.results / "runs").rglob("artifacts/*/*") if path.is_file())
    os.utime(artifact, ns=(0, 0))
    assert settled(), "a run's file"
    (finished.results / "calibrations").mkdir()
    (finished.results / "calibrations" / "a-b.json").write_text("{}")
    assert settled(), "a calibration"
    (finished.results / conclusion.FILE).write_text("[]")
    assert settled(), "what was kept cannot be read"
    monkeypatch.setattr(twinbed, "__version__", f"{twinbed.__version__}.other")
    assert settled(), "another version"


def test_a_report_that_was_left_out_is_made_when_asked_for(finished: Finished) -> None:
    finished.page.unlink()
    assert finished.again("--no-report") == 0
    (finished.results / conclusion.FILE).unlink()
    assert finished.again("--no-report") == 0
    assert not finished.page.exists()
    assert (finished.again(), finished.again()) == (1, 0)


def test_a_failed_run_keeps_its_exit_code(finished: Finished) -> None:
    record = next((finished.results / "runs").glob("*/run.json"))
    data = json.loads(record.read_bytes())
    record.write_text(json.dumps({**data, "status": "failed", "failed_phase": "workload", "reason": "gone"}))
    assert run(["run", "finished.yaml"]) == 1
    made = finished.made
    assert run(["run", "finished.yaml"]) == 1
    assert finished.made == made


def test_another_source_is_another_program(tmp_path: Path) -> None:
    """Sources and data count, and what an interpreter compiled of them does not."""
    (tmp_path / "results").mkdir()
    package = tmp_path / "package"
    package.mkdir()
    (package / "module.py").write_text("one = 1\n")
    first = made_of(tmp_path / "results", package)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "module.pyc").write_bytes(b"compiled")
    assert made_of(tmp_path / "results", package) == first
    (package / "module.py").write_text("one = 2\n")
    second = made_of(tmp_path / "results", package)
    (package / "rows.csv").write_text("a\n")
    assert len({first, second, made_of(tmp_path / "results", package)}) == 3


def test_a_finished_study_needs_no_statistics(finished: Finished) -> None:
    """What takes long to import is not imported where there is nothing to do."""
    code = (
        "import sys; from twinbed.cli.main import run; assert run(['run', 'finished.yaml']) == 0; "
        "print(*sorted({'scipy', 'pandas', 'pyarrow', 'twinbed.cli.interim'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert ended.stdout.splitlines()[-1] == ""
