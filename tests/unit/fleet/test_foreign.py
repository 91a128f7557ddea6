"""What machines send is held against what they said, and leads nowhere."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from twinbed import design, registry
from twinbed.cli.main import run as main
from twinbed.fleet import member
from twinbed.fleet.arrival import batches, checked, checked_offer, hold_to, link_check, pieces_of, write
from twinbed.fleet.words import File, LeftOut, Made, Needed, Offered, Piece
from twinbed.hosts.error import HostError
from twinbed.model.run import Status
from twinbed.study.loading import load
from twinbed.study.run import Choice, Run

STUDY = """
study: foreign
testbeds: {a: {driver: fake}}
workload: {kind: planted}
instruments: [counters]
replicates: 1
"""


@pytest.fixture
def run() -> Run:
    (one,) = design.runs(load(STUDY, "foreign.yaml", registry.catalogue()))
    return one


@pytest.mark.parametrize("path", ["../x", "/etc/x", "artifacts/../../x", "artifacts//x", ".", "a\0b", "artifacts/.hidden"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(HostError, match="m1"):
        write(folder, Piece(path, 0, 1), b"x", "m1")
    assert [path.name for path in tmp_path.rglob("*")] == ["run"]


def test_pieces_are_put_together_and_a_short_one_is_refused(tmp_path: Path) -> None:
    write(tmp_path, Piece("artifacts/client/a", 0, 3), b"abc", "m1")
    write(tmp_path, Piece("artifacts/client/a", 3, 2), b"de", "m1")
    assert (tmp_path / "artifacts/client/a").read_bytes() == b"abcde"
    pieces = [Piece("a", 0, 3), Piece("b", 0, 1)]
    assert [content for _, content in pieces_of(b"abcd", pieces, "m1")] == [b"abc", b"d"]
    for content in (b"abc", b"abcde"):
        with pytest.raises(HostError, match="changed their sizes"):
            list(pieces_of(content, pieces, "m1"))


@pytest.mark.parametrize(
    "files",
    [
        {"../x": File(1, "")},
        {"a": File(1, ""), "a/b": File(1, "")},
        {"a/" * 30 + "a": File(1, "")},
        {"a": File(-1, "")},
        {"a": File(2**60, "")},
        {f"a{number}": File(0, "") for number in range(100_001)},
    ],
    ids=range(6),
)
def test_files_that_cannot_be_are_not_asked_for(tmp_path: Path, run: Run, files: dict[str, File]) -> None:
    with pytest.raises(HostError, match="m1"):
        checked(Made(run.id, Status.COMPLETE, 0.0, None, None, files, None), run, tmp_path, "m1")


def test_another_run_or_a_check_that_is_none_is_refused(tmp_path: Path, run: Run) -> None:
    made = Made("other", Status.COMPLETE, 0.0, None, None, {}, None)
    with pytest.raises(HostError, match="it was asked for run"):
        checked(made, run, tmp_path, "m1")
    for text in ("{", "[]", "{}", "[" * 100_000):
        with pytest.raises(HostError, match="check of links"):
            link_check(replace(made, link_check=text), "m1")


@pytest.mark.parametrize(
    "offered", [Offered("../m", "", {}), Offered("m", "", {"cpu": "x" * 1001}), Offered("m" * 201, "", {})]
)
def test_a_machine_says_little_of_itself(offered: Offered) -> None:
    with pytest.raises(HostError):
        checked_offer(offered, "tcp://m")


def test_pieces_cover_every_byte_of_every_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinbed.fleet.arrival._PIECES_BYTES", 10)
    files = {"a": File(25, ""), "b": File(0, ""), "c": File(5, ""), "d": File(10, "")}
    asked = list(batches(Made("r", Status.COMPLETE, 0.0, None, None, files, None)))
    assert all(sum(piece.bytes for piece in batch) <= 10 for batch in asked)
    pieces = [piece for batch in asked for piece in batch]
    for path, file in files.items():
        own = [piece for piece in pieces if piece.path == path]
        assert own, path
        assert [piece.start for piece in own] == [sum(before.bytes for before in own[:place]) for place in range(len(own))]
        assert sum(piece.bytes for piece in own) == file.bytes


def sent(
    folder: Path, run: Run, machine: str = "m1", artifacts: tuple[tuple[str, bytes], ...] = (("client/a", b"abc"),)
) -> Made:
    """What an honest machine sends."""
    record = run.record(
        status=Status.COMPLETE,
        started_s=0.0,
        phases={},
        failed_phase=None,
        reason=None,
        cautions=(),
        artifacts=[{"path": f"artifacts/{path}", "bytes": len(content)} for path, content in artifacts],
        twinbed="0",
        lab="",
        machine=machine,
    )
    contents = {"run.json": json.dumps(record.to_json()).encode(), **{f"artifacts/{path}": each for path, each in artifacts}}
    files = {}
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        files[path] = File(len(content), hashlib.blake2b(content).hexdigest())
    return Made(run.id, Status.COMPLETE, 0.0, None, None, files, None)


def test_what_is_whole_is_taken(tmp_path: Path, run: Run) -> None:
    hold_to(tmp_path, sent(tmp_path, run), run, "m1")


def test_what_changed_on_its_way_is_refused(tmp_path: Path, run: Run) -> None:
    made = sent(tmp_path, run)
    (tmp_path / "artifacts/client/a").write_bytes(b"abd")
    with pytest.raises(HostError, match="artifacts/client/a"):
        hold_to(tmp_path, made, run, "m1")


@pytest.mark.parametrize("what", ["another run", "another machine", "another status", "an artifact more"])
def test_what_is_not_the_run_that_was_ordered_is_refused(tmp_path: Path, run: Run, what: str) -> None:
    made = sent(tmp_path, run, machine="m2" if what == "another machine" else "m1")
    if what == "another run":
        run = replace(run, replicate=1)
    elif what == "another status":
        made = replace(made, status=Status.FAILED)
    elif what == "an artifact more":
        (tmp_path / "artifacts/client/b").write_bytes(b"")
        made = replace(made, files={**made.files, "artifacts/client/b": File(0, hashlib.blake2b(b"").hexdigest())})
    with pytest.raises(HostError, match="are not those of run"):
        hold_to(tmp_path, made, run, "m1")


def test_a_member_refuses_runs_of_plugins_that_it_has_not(run: Run) -> None:
    member._known(run)
    strange = replace(
        run,
        testbed=Choice("warp", run.testbed.params),
        workload=Choice("sing", run.workload.params),
        instruments={"ruler": Choice("ruler", run.instruments["counters"].params)},
    )
    with pytest.raises(LeftOut, match="driver warp, workload sing, ruler"):
        member._known(strange)


def test_a_member_refuses_runs_of_packages_that_it_has_not() -> None:
    member.hold(Needed({}))
    with pytest.raises(
        LeftOut, match=r"it lacks the workload sing of twinbed-song==1\.0, the format score of twinbed-song==1\.0"
    ):
        member.hold(Needed({"workloads.sing": "twinbed-song==1.0", "formats.score": "twinbed-song==1.0"}))


def test_runs_that_nobody_comes_for_are_swept_after_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    old, young = (tmp_path / "fleet" / name / "runs/0123" for name in ("old", "young"))
    for folder in (old, young):
        folder.mkdir(parents=True)
    (tmp_path / "fleet/machine.lock").touch()
    long_ago = time.time() - 8 * 86400
    for path in (old, old.parent, old.parents[1]):
        os.utime(path, (long_ago, long_ago))
    os.utime(young.parents[1], (long_ago, long_ago))
    # What labs of others left is theirs.
    monkeypatch.setattr("twinbed.hosts.lab.leftovers", list)
    monkeypatch.setattr("twinbed.registry.PLUGINS", replace(registry.PLUGINS, drivers={}))
    assert main(["sweep", "--dry-run"]) == 0
    assert f"would remove {old.parents[1]}: runs made for a fleet" in capsys.readouterr().out and old.is_dir()
    assert main(["sweep"]) == 0
    assert not old.parents[1].exists() and young.is_dir()


def test_runs_that_are_taken_away_meanwhile_are_no_longer_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A study of this machine ends while another command looks for forgotten ones."""
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    (tmp_path / "fleet/ends/runs/0123").mkdir(parents=True)
    original = Path.glob

    def glob(self: Path, pattern: str) -> Iterator[Path]:
        found = list(original(self, pattern))
        if pattern == "runs/*":
            shutil.rmtree(self)
        return iter(found)

    monkeypatch.setattr(Path, "glob", glob)
    assert member.forgotten() == []
    assert not (tmp_path / "fleet/ends").exists()
