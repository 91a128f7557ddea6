"""Results on disk: what is there is whole, one writer at a time, evidence is kept."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinbed import design
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.registry import catalogue
from twinbed.results.folder import DiskFull, Folder, NotWritable, ResultsBusy, ResultsUnusable
from twinbed.results.store import Store, StoreError
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.tree import Tree

STUDY = "study: x\ntestbeds: {a: {driver: fake}}\nworkload: {kind: planted}\ninstruments: []\nreplicates: 1\n"


@pytest.fixture
def run() -> Run:
    return design.runs(load(STUDY, "x.yaml", catalogue()))[0]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


def record(run: Run, status: Status = Status.COMPLETE) -> Record:
    rest = {"started_s": 1.0, "phases": {"up": 0.5}, "failed_phase": None, "reason": None, "cautions": (), "artifacts": []}
    return run.record(status=status, twinbed="0", lab="", **rest)


def test_a_run_appears_whole(folder: Folder, run: Run) -> None:
    with folder.locked():
        unfinished = folder.begin(run.id)
        (unfinished / "artifacts" / "data").write_bytes(b"x")
        assert folder.status(run.id) is None
        assert unfinished.name.startswith("."), "readers of results pass it over"
        final = folder.finish(unfinished, record(run), [{"setting": "rate"}], {"client": {}})
    assert final == folder.runs / run.id
    assert sorted(path.name for path in final.iterdir()) == ["applied.json", "artifacts", "passport.json", "run.json"]
    assert (final / "artifacts" / "data").read_bytes() == b"x"
    assert Record.from_json(json.loads((final / "run.json").read_text())) == record(run)
    assert folder.status(run.id) == "complete"
    assert not unfinished.exists()


def test_a_run_that_is_cut_short_leaves_no_record(folder: Folder, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with folder.locked():
        unfinished = folder.begin(run.id)

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fdatasync", stop)
        with pytest.raises(KeyboardInterrupt):
            folder.finish(unfinished, record(run), [], {})
        assert folder.status(run.id) is None
    assert unfinished.exists()
    with folder.locked():
        assert not unfinished.exists(), "the next one sweeps it"


def test_one_writer_at_a_time(folder: Folder) -> None:
    code = f"""
from pathlib import Path
from twinbed.results.folder import Folder
with Folder(Path({str(folder.path)!r})).locked():
    print("held", flush=True)
    input()
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin and holder.stdout
    assert holder.stdout.readline() == b"held\n"
    unfinished = folder.begin("abc")
    with pytest.raises(ResultsBusy, match=rf"another twinbed \(process {holder.pid}\) is writing"), folder.locked():
        pass
    assert unfinished.exists(), "the holder's run in flight is left alone"
    holder.communicate(b"\n")
    with folder.locked():
        assert not unfinished.exists()


def test_failed_runs_are_kept_side_by_side(folder: Folder, run: Run) -> None:
    with folder.locked():
        for number in (1, 2, 3):
            folder.finish(folder.begin(run.id), record(run, Status.FAILED), [number], {})
            folder.set_aside(run.id)
            assert folder.status(run.id) is None
        (folder.path / "failed" / f"{run.id}-1").rename(folder.path / "looked-at")
        folder.finish(folder.begin(run.id), record(run, Status.FAILED), [4], {})
        folder.set_aside(run.id)
    kept = {path.parent.name: json.loads(path.read_text()) for path in folder.path.glob("failed/*/applied.json")}
    assert kept == {f"{run.id}-1": [4], f"{run.id}-2": [2], f"{run.id}-3": [3]}


def test_files_are_written_at_once(folder: Folder) -> None:
    with folder.locked():
        folder.write("study.json", "{}")
        folder.write("study.json", "[]")
    assert (folder.path / "study.json").read_text() == "[]"
    assert sorted(path.name for path in folder.path.iterdir()) == [".lock", "runs", "study.json"]


def test_the_log_is_a_line_an_event(folder: Folder) -> None:
    with folder.locked():
        folder.log({"run": "a", "phase": "up"})
        folder.log({"run": "a", "reason": "line\nbreak"})
    lines = [json.loads(line) for line in (folder.path / "events.jsonl").read_text().splitlines()]
    assert [line.get("phase") for line in lines] == ["up", None]
    assert lines[0]["time_s"] <= lines[1]["time_s"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(number: int, folder: Folder, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with folder.locked():
        unfinished = folder.begin(run.id)

        def full(*_: object, **__: object) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(Tree, "write", full)
        with pytest.raises(DiskFull, match="complete runs are safe") as error:
            folder.finish(unfinished, record(run), [], {})
    assert error.value.exit_code == 3


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("within", [True, False])
def test_a_folder_that_cannot_be_written_any_more(
    number: int, within: bool, folder: Folder, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused elsewhere is another matter."""
    with folder.locked():
        unfinished = folder.begin(run.id)

        def refused(tree: Tree, name: str, *_: object) -> None:
            raise OSError(number, os.strerror(number), str(tree.path / name if within else "/elsewhere/file"))

        monkeypatch.setattr(Tree, "rename", refused)
        with pytest.raises(NotWritable if within else OSError) as error:
            folder.finish(unfinished, record(run), [], {})
    if isinstance(error.value, NotWritable):
        assert error.value.exit_code == 3
        assert f"{folder.path}" in error.value.message and "complete runs are safe" in error.value.message


def test_what_cannot_be_a_results_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ResultsUnusable, match=f"^{path}"), Folder(path).locked():
            pass


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\udcff"])
def test_a_record_that_cannot_be_read_is_not_taken_for_none(text: str, folder: Folder) -> None:
    """It would be made again over what may be data."""
    (folder.runs / "abc").mkdir(parents=True)
    (folder.runs / "abc" / "run.json").write_text(text, errors="surrogateescape")
    with pytest.raises(ResultsUnusable, match=r"abc/run\.json cannot be read"):
        folder.status("abc")


def test_what_was_made_for_nothing_goes_again(tmp_path: Path) -> None:
    results = tmp_path / "results" / "study"
    with pytest.raises(KeyboardInterrupt), Folder(results).locked():
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_or_came_to_be_stays(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with Folder(tmp_path / "results").locked():
        pass
    with Folder(tmp_path / "other").locked():
        (tmp_path / "other" / "study.json").write_text("{}")
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == [".lock", "runs", "study.json"]
    (tmp_path / "mine").mkdir()
    with Folder(tmp_path / "mine" / "study").locked():
        (tmp_path / "mine" / "notes").write_text("x")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]
    assert (tmp_path / "results").is_dir()


def test_a_folder_without_a_run_is_no_results(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(StoreError, match=r"has no runs and no study\.json"):
        Store.open(tmp_path)


def test_what_has_a_runs_name_and_is_none_is_moved_aside(folder: Folder, run: Run) -> None:
    with folder.locked():
        (folder.runs / run.id / "artifacts").mkdir(parents=True)
        (folder.runs / run.id / "artifacts" / "left").write_text("x")
        folder.finish(folder.begin(run.id), record(run), [], {})
    assert folder.status(run.id) == "complete"
    assert (folder.path / "failed" / f"{run.id}-1" / "artifacts" / "left").read_text() == "x"
