"""Folders that last no longer than a command, and the one folder that they are in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from twinbed.hosts import scratch
from twinbed.hosts.error import HostError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "twinbed-7"
    monkeypatch.setattr(scratch, "_path", lambda large: path.with_name("twinbed-7-large") if large else path)
    return path


@pytest.mark.parametrize(
    ("runtime", "temporary", "expected"),
    [
        ("/run/user/7", "/var/tmp", "/run/user/7/twinbed-7"),
        (None, "/var/tmp", "/var/tmp/twinbed-7"),
        ("/run/" + "x" * 40, "/var/tmp", "/tmp/twinbed-7"),
        (None, "/var/tmp/" + "x" * 40, "/tmp/twinbed-7"),
    ],
)
def test_the_path_is_short_enough_for_sockets(
    runtime: str | None, temporary: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: temporary)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    assert str(scratch._path(large=False)) == expected


def test_a_folder_is_private_and_gone_afterwards(root: Path) -> None:
    with scratch.folder() as folder:
        (folder / "below").mkdir()
        (folder / "below" / "file").write_text("x")
        assert [path.stat().st_mode & 0o777 for path in (folder, root)] == [0o700, 0o700]
        assert scratch.left_behind() == []
    assert list(root.iterdir()) == []


@pytest.fixture
def killed(root: Path) -> Path:
    return _killed(root)


def _killed(root: Path, arguments: str = "") -> Path:
    """The folder of a command that was killed."""
    program = f"""
import sys, time
from pathlib import Path
from twinbed.hosts import scratch
scratch._path = lambda large: Path({str(root)!r} + "-large" * large)
with scratch.folder({arguments}) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        folder = Path(holder.stdout.readline().strip())
        assert scratch.left_behind() == []
        holder.kill()
        holder.wait()
    assert scratch.left_behind() == [folder]
    return folder


def test_the_folder_of_a_killed_command_goes_when_the_next_one_makes_its_own(killed: Path) -> None:
    with scratch.folder() as first, scratch.folder() as second:
        assert sorted(killed.parent.iterdir()) == sorted([first, second])


def test_the_folder_of_a_lab_is_left_to_its_keeper_and_to_sweep(killed: Path) -> None:
    (killed / scratch.KEPT).touch()
    with scratch.folder():
        assert scratch.left_behind() == [killed]


def test_large_things_are_elsewhere_and_go_as_well(root: Path) -> None:
    killed = _killed(root, "large=True")
    assert killed.parent == root.with_name("twinbed-7-large")
    with scratch.folder():
        assert scratch.left_behind() == [killed]
    with scratch.folder(large=True) as folder:
        assert list(killed.parent.iterdir()) == [folder]


def test_large_things_are_never_put_into_memory_that_is_a_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 7)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/var/tmp/" + "x" * 40)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    assert str(scratch._path(large=True)) == f"/var/tmp/{'x' * 40}/twinbed-7"


def test_a_folder_that_others_may_enter_is_closed(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    scratch.root()
    assert root.stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HostError, match=f"^{root} must be a folder that belongs to user {os.geteuid()}"):
        scratch.root()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.privileged
def test_a_folder_that_somebody_else_made_is_refused(root: Path) -> None:
    root.mkdir()
    os.chown(root, 12345, 12345)
    with pytest.raises(HostError, match="its owner can change the programs in it"), scratch.folder():
        pass
    assert list(root.iterdir()) == []
