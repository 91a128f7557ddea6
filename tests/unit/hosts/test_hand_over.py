"""Artifacts become plain files of this user's, whatever programs made of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from twinbed.hosts import hand_over
from twinbed.hosts.hand_over import MOST_LEVELS, take_over

CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")
"""cap_net_raw=ep in the kernel's struct vfs_cap_data, revision 2."""
ACL = bytes.fromhex("0200000001000600ffffffff020007003930000004000400ffffffff10000700ffffffff20000400ffffffff")
"""user::rw-, user:12345:rwx, group::r--, mask::rwx, other::r-- (acl(5))."""
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (folder := tmp_path / "artifacts" / "client").mkdir(parents=True)
    return folder


def taken(place: Path, *trusted: str) -> list[str]:
    return take_over(place.parent, trusted)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}


def test_modes_are_plain_and_as_the_umask_says(place: Path) -> None:
    (place / "inner").mkdir()
    for name, mode in (("program", 0o6755), ("open", 0o666), ("closed", 0), ("inner/sticky", 0o1777)):
        (place / name).write_text("x")
        (place / name).chmod(mode)
    (place / "inner").chmod(0o2000)
    before = os.umask(0o027)
    try:
        assert taken(place) == []
    finally:
        os.umask(before)
    assert modes(place) == {"program": 0o640, "open": 0o640, "closed": 0o640, "inner": 0o750, "inner/sticky": 0o640}


@root
def test_owners_capabilities_and_access_lists_are_taken_off(place: Path) -> None:
    (file := place / "program").write_text("x")
    os.setxattr(file, "security.capability", CAPABILITY)
    os.setxattr(file, "system.posix_acl_access", ACL)
    os.setxattr(place, "system.posix_acl_default", ACL)
    for path in (place, file):
        os.chown(path, 1234, 1234)
    os.setxattr(file, "security.capability", CAPABILITY)  # which a change of owner took off
    assert taken(place) == []
    assert [(each.stat().st_uid, each.stat().st_gid) for each in (place, file)] == [(os.geteuid(), os.getegid())] * 2
    assert (os.listxattr(place), os.listxattr(file)) == ([], [])
    assert modes(place) == {"program": 0o644}


def test_what_is_no_file_is_removed_and_named(place: Path, tmp_path: Path) -> None:
    (victim := tmp_path / "victim").mkdir()
    (victim / "kept").write_text("")
    victim.chmod(0o700)
    (place / "ab.out").write_text("")
    (place / "to-a-file").symlink_to("/etc/passwd")
    (place / "to-a-folder").symlink_to(victim)
    os.mkfifo(place / "pipe")
    assert taken(place) == [
        "client/pipe (a named pipe)",
        "client/to-a-file (a symbolic link)",
        "client/to-a-folder (a symbolic link)",
    ]
    assert [path.name for path in place.iterdir()] == ["ab.out"]
    assert (victim / "kept").is_file() and stat.S_IMODE(victim.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb", ".hidden", "-rf", "ä", "a b", os.fsdecode(b"\xff")])
def test_a_name_that_is_not_plain_is_removed_as_a_guests_is_refused(name: str, place: Path) -> None:
    (place / "folder").mkdir()
    (place / "folder" / name).mkdir()
    (place / "folder" / name / "file").write_text("")
    (place / name).write_text("")
    removed = taken(place)
    assert sorted(line.partition(" (no name of an artifact")[0] for line in removed) == sorted(
        [f"client/{name!a}", f"client/folder/{name!a}"]
    )
    assert all(line.isascii() and line.isprintable() for line in removed)
    assert [path.name for path in place.rglob("*")] == ["folder"]


def test_names_of_the_labs_own_machine_are_as_its_programs_give_them(place: Path) -> None:
    (place / ".state").write_text("")
    assert taken(place, "client") == []


def test_a_sparse_file_is_removed_and_one_that_is_on_the_disk_is_not(place: Path) -> None:
    with (place / "sparse").open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(100 * 10**9)
    with (place / "small").open("wb") as file:
        file.truncate(hand_over.MOST_HOLES_BYTES)
    with (place / "reserved").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 2 * hand_over.MOST_HOLES_BYTES)
    assert taken(place) == ["client/sparse (a sparse file: of its 100,000,000,000 bytes 4,096 are on the disk)"]
    assert sorted(path.name for path in place.iterdir()) == ["reserved", "small"]


def test_no_more_than_so_many_holes_are_looked_at(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "MOST_HOLES_BYTES", 2**20)
    monkeypatch.setattr(hand_over, "_MOST_PIECES", 10)
    with (place / "sparse").open("wb") as file:
        for number in range(1000):
            os.pwrite(file.fileno(), b"x", number * 8192)
    (removed,) = taken(place)
    assert removed.startswith("client/sparse (a sparse file: ")


@pytest.mark.parametrize("links", [0, 3])
def test_what_would_not_fit_when_it_is_copied_is_removed(links: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name of a file counts: whoever copies or packs the folder writes it that often."""
    (place / "file").write_bytes(b"x" * 2**20)
    for number in range(links):
        (place / f"link{number}").hardlink_to(place / "file")
    whole = os.statvfs(place)
    free = whole.f_bavail * whole.f_frsize
    monkeypatch.setattr(hand_over, "ROOM_SHARE", 2.5 * 2**20 / (free + 2**20))
    removed = taken(place)
    if links:
        (line,) = removed
        assert line.startswith("all of client (4,194,304 bytes of files, where half of the free space is ")
        assert not place.exists()
    else:
        assert removed == [] and (place / "file").exists()


def test_more_files_than_a_host_may_have_are_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "MOST_FILES", 3)
    (place / "inner").mkdir()
    for name in ("a", "inner/b"):
        (place / name).write_text("")
    assert taken(place) == []
    (place / "inner/c").write_text("")
    (place.parent / "server").mkdir()
    assert taken(place) == ["all of client (more than 3 files and folders)"]
    assert [path.name for path in place.parent.iterdir()] == ["server"]
    (place / "a").mkdir(parents=True)
    for name in "bcd":
        (place / "a" / name).write_text("")
    assert taken(place, "client") == []


def test_folders_within_each_other_beyond_any_path_are_removed(place: Path) -> None:
    (place / "/".join("f" * MOST_LEVELS)).mkdir(parents=True)
    assert taken(place) == []
    folder = os.open(place, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("g" * 100, dir_fd=folder)
        inner = os.open("g" * 100, os.O_RDONLY, dir_fd=folder)
        with os.fdopen(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner), "w"):
            pass
        os.close(folder)
        folder = inner
    os.close(folder)
    (removed,) = taken(place)
    assert removed.endswith(f" (a folder within {MOST_LEVELS} others)")
    left = [path.relative_to(place).parts for path in place.rglob("*")]
    assert max(map(len, left)) == MOST_LEVELS + 1, "a file in the innermost"
    assert {name for parts in left for name in parts} == {"f", "g" * 100, "file"}


def test_only_the_first_of_very_many_are_named(place: Path) -> None:
    for number in range(100):
        (place / f"link{number:02}").symlink_to("/")
    removed = taken(place)
    assert removed[0] == "client/link00 (a symbolic link)" and removed[20:] == ["80 more"]
    assert not list(place.iterdir())
