"""What goes wrong around a study: each time a clear message, a documented exit code, and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.command import twinbed

STUDY = """
study: plain
testbeds:
  a: {driver: fake, seed: 1}
  b: {driver: fake, seed: 2}
workload: {kind: planted, seconds: SECONDS}
instruments: []
replicates: 10
"""


def in_a_process(*arguments: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "twinbed.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(env or {})},
    )


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "plain.yaml"
    path.write_text(STUDY.replace("SECONDS", "0s"))
    return path


def test_a_wrong_study_names_every_mistake_and_its_place(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("study: wrong\ntestbeds:\n  a: {driver: qmeu}\nworkload: {kind: http, durration: 5s}\nreplicates: none\n")
    done = twinbed("run", path)
    assert done.returncode == 2
    assert f"{path}:3:15: " in done.stderr and "did you mean 'qemu'?" in done.stderr
    assert f"{path}:4:24: " in done.stderr and "did you mean 'duration'?" in done.stderr
    assert f"{path}:5:13: " in done.stderr
    assert not Path("results/wrong").exists()


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    done = twinbed("run", tmp_path / "none.yaml")
    assert done.returncode == 2
    assert (
        "none.yaml: No such file or directory\n  write one: twinbed init; or see those that come with twinbed: twinbed studies"
        in done.stderr
    )


def test_a_tool_that_path_hides_is_named_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "guests.yaml"
    path.write_text("study: guests\ntestbeds:\n  g: {driver: qemu}\nworkload: {kind: http, duration: 1s}\n")
    done = in_a_process("run", path, "-o", tmp_path / "results", env={"PATH": str(tmp_path)})
    assert done.returncode == 3
    assert "not in PATH, but in /usr/bin: qemu-system-x86_64" in done.stderr
    assert 'export PATH="$PATH:/usr/bin"' in done.stderr
    assert not list((tmp_path / "results").rglob("run.json"))


def test_a_second_run_on_the_same_results_is_refused(study: Path, tmp_path: Path) -> None:
    study.write_text(STUDY.replace("SECONDS", "2s"))
    results = tmp_path / "results"
    first = subprocess.Popen(
        [sys.executable, "-m", "twinbed.cli.main", "run", str(study), "-o", str(results)], stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 60
    while not (results / "study.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    second = twinbed("run", study, "-o", results)
    first.terminate()
    first.communicate(timeout=60)
    assert second.returncode == 2
    assert f"another twinbed (process {first.pid}) is writing these results" in second.stderr
    assert first.returncode == 130, "SIGTERM is an interrupt like any other"


def test_a_full_disk_loses_nothing(study: Path, tmp_path: Path) -> None:
    """The results are on a file system of 300 KiB, in a mount namespace of its own, which is then made larger."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = """
mount -t tmpfs -o size=300k tmpfs "$1"
shift
"$@"; echo "first: $?"
ls "$DISK"/results/runs | grep -c '^[0-9a-f]' ; ls -A "$DISK"/results/runs | grep -c unfinished
mount -o remount,size=20m "$DISK"
"$@"; echo "second: $?"
cat "$DISK"/results/runs/*/run.json | grep -c '"status": "complete"'
"""
    study.write_text(STUDY.replace("SECONDS", "0s").replace("replicates: 10", "replicates: 40"))
    done = subprocess.run(
        [
            *("unshare", "-m", "sh", "-c", script, "sh", disk),
            *(sys.executable, "-m", "twinbed.cli.main", "run", "--no-report", str(study), "-o", str(disk / "results")),
        ],
        env={**os.environ, "DISK": str(disk)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "No space left on device; complete runs are safe" in done.stderr, done.stderr
    assert "first: 3\n" in done.stdout
    kept, unfinished = done.stdout.split("first: 3\n")[1].split("\n")[:2]
    assert 0 < int(kept) < 80
    assert unfinished == "0"
    assert "second: 0\n" in done.stdout
    assert done.stdout.strip().endswith("\n80")
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study, without tables: to be copied."""
    folder = tmp_path_factory.mktemp("undamaged")
    (folder / "plain.yaml").write_text(STUDY.replace("SECONDS", "0s"))
    assert twinbed("run", folder / "plain.yaml", "-o", folder / "results", "--no-report").returncode == 0
    shutil.rmtree(folder / "results" / "tables")
    return folder / "results"


@pytest.mark.parametrize("damage", ["truncated", "removed", "garbage"])
def test_a_damaged_artifact_is_a_caution_and_the_others_stay(damage: str, undamaged: Path, tmp_path: Path) -> None:
    results = shutil.copytree(undamaged, tmp_path / "results")
    artifact = sorted(results.glob("runs/*/artifacts/client/planted.json"))[0]
    if damage == "removed":
        artifact.unlink()
    else:
        artifact.write_bytes(artifact.read_bytes()[:20] if damage == "truncated" else b"\x00\xff" * 50)
    done = twinbed("compare", results, "--format", "json")
    assert done.returncode in (0, 4, 5), done.stderr
    data = json.loads(done.stdout)
    assert any(caution["kind"] == "unreadable" for caution in data["cautions"])
    counts = sorted(row["n"] for row in data["comparisons"] if row["metric"] == "requests_per_second")
    assert 9 in counts or any(row.get("reference_n") == 9 for row in data["comparisons"])


def test_results_that_are_none(tmp_path: Path) -> None:
    done = twinbed("compare", tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_no_command_shows_a_traceback_for_a_typo() -> None:
    done = twinbed("comapre", "x")
    assert done.returncode == 2
    assert "compare" in done.stderr
