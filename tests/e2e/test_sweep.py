"""What a lab leaves when its keeper is killed too: named, removed, and nothing of a living lab with it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from twinbed.hosts import cgroups, scratch
from twinbed.hosts import lab as labs
from twinbed.hosts.cgroups import hierarchies
from twinbed.hosts.lab import leftovers, open_lab
from twinbed.hosts.scratch import PREFIX

HOLD = """
import sys
from pathlib import Path
from twinbed.hosts.cgroups import Limits
from twinbed.hosts.lab import open_lab
from twinbed.image import probe_path
with open_lab(probe_path(), Path(sys.argv[1])) as lab:
    lab.cgroups.host("client", Limits(memory_bytes=2**26) if "memory" in lab.cgroups.by_controller else Limits())
    print(lab.id, flush=True)
    sys.stdin.read()
"""


def sweep(*arguments: str) -> str:
    command = [sys.executable, "-m", "twinbed.cli.main", "sweep", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def keepers(lab: str) -> list[int]:
    """The lab's keeper and its PID 1."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"lab" in words and lab.encode() in words:
            found.append(int(process.name))
    return sorted(found)


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[str]:
    """The id of a lab whose controller and keeper were killed."""
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin and child.stdout
    lab = child.stdout.readline().strip()
    assert lab
    child.send_signal(signal.SIGSTOP)
    processes = keepers(lab)
    assert len(processes) == 2
    for process in processes:
        with contextlib.suppress(ProcessLookupError):  # the second may go with the first
            os.kill(process, signal.SIGKILL)
    child.kill()
    child.communicate()
    deadline = time.monotonic() + 10
    while keepers(lab) and time.monotonic() < deadline:
        time.sleep(0.01)
    yield lab
    for folder, groups in leftovers():
        if folder.name == f"{PREFIX}{lab}":
            labs.remove(folder, groups)


def test_leftovers_are_named_then_removed_and_a_living_lab_stays(dead: str, probe: Path, tmp_path: Path) -> None:
    name = f"{PREFIX}{dead}"
    there = hierarchies()
    remains = [scratch.root() / name, *([there["memory"].root / name / "client"] if "memory" in there else [])]
    assert all(path.exists() for path in remains), "its keeper could not remove them"
    with open_lab(probe, tmp_path) as living:
        told = sweep("--dry-run")
        for path in remains:
            assert str(path).removesuffix("/client") in told
        assert living.id not in told
        assert all(path.exists() for path in remains)

        told = sweep()
        assert dead in told and living.id not in told
        assert not any(path.exists() for path in remains)
        assert living.machine.run(["echo", "alive"]).text == "alive\n"
        assert living.scratch.exists() and (living.cgroups.unified is None or living.cgroups.unified.exists())
    assert dead not in sweep("--dry-run")


def test_a_lab_that_is_just_starting_is_no_leftover(
    probe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    """Its folder is there before its lock is held: whoever looks at that instant waits."""
    original = fcntl.flock
    looking: list[subprocess.Popen[str]] = []

    def flock(file: int, how: int) -> None:
        if how == fcntl.LOCK_EX and stat.S_ISREG(os.fstat(file).st_mode) and not looking:
            command = [sys.executable, "-c", "from twinbed.hosts.lab import leftovers; print(leftovers())"]
            looking.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            with pytest.raises(subprocess.TimeoutExpired):
                looking[0].wait(0.7)
        original(file, how)

    monkeypatch.setattr(scratch.fcntl, "flock", flock)
    with open_lab(probe, tmp_path) as lab:
        assert lab.id not in looking[0].communicate(timeout=30)[0]


def test_what_carries_no_id_is_never_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "root", lambda **_: tmp_path)
    monkeypatch.setattr(cgroups, "roots", list)
    assert leftovers() == []
    (tmp_path / "mine").mkdir()
    (tmp_path / "twinbed-0123456789").mkdir()
    assert leftovers() == [(tmp_path / "twinbed-0123456789", ())]
