"""The root of a container image in a folder: as the specification says, and nothing outside of it whatever an image holds."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.container_images import Member, file, folder, layer, link

from twinbed.image import unpacking
from twinbed.image.unpacking import place, unpack
from twinbed.readers.container_image import ContainerImage, Unreadable

ADDED = {"proc", "sys", "dev", "tmp", "run", "etc", "etc/hosts"}


@contextlib.contextmanager
def _opened(content: bytes, scratch: Path) -> Iterator[BinaryIO]:
    path = scratch / "layer"
    path.write_bytes(content)
    with path.open("rb") as stream:
        yield stream


def tree(tmp_path: Path, *layers: Sequence[Member] | bytes) -> Path:
    """Unpack layers beside a folder that nothing may reach."""
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "outside/file").write_text("untouched")
    contents = [each if isinstance(each, bytes) else layer(each) for each in layers]
    top = tmp_path / "image"
    try:
        unpack(ContainerImage("", [partial(_opened, each) for each in contents], {}), top)
    finally:
        assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]
        assert (tmp_path / "outside/file").read_text() == "untouched"
        assert not {path.name for path in tmp_path.iterdir()} - {"outside", "image", "layer"}
    return top


def names(top: Path) -> set[str]:
    return {str(path.relative_to(top)) for path in top.rglob("*")} - ADDED


def refused(tmp_path: Path, *layers: Sequence[Member] | bytes) -> str:
    with pytest.raises(Unreadable) as error:
        tree(tmp_path, *layers)
    return str(error.value)


def test_files_have_their_content_mode_and_time(tmp_path: Path) -> None:
    top = tree(tmp_path, [folder("./"), folder("./d/", 0o700), file("./d/run", b"x", 0o755), link("l", "d/run")])
    assert names(top) == {"d", "d/run", "l"}
    status = (top / "d/run").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_mtime) == (0o755, 1_600_000_000)
    assert stat.S_IMODE((top / "d").stat().st_mode) == 0o700
    assert (top / "l").readlink() == Path("d/run")


def test_an_upper_layer_removes_and_replaces(tmp_path: Path) -> None:
    lower = [folder("a"), file("a/1"), file("a/2"), folder("b"), file("b/1"), file("c", b"old"), folder("d"), file("d/1")]
    upper = [file("a/.wh.1"), file("b/new"), file("b/.wh..wh..opq"), file("c", b"new"), file("d"), file(".wh.missing")]
    top = tree(tmp_path, lower, upper)
    assert names(top) == {"a", "a/2", "b", "b/new", "c", "d"}, "what stands before an opaque mark is of the same layer"
    assert (top / "c").read_bytes() == b"new"
    assert (top / "d").is_file()


def test_a_layer_writes_through_a_link_to_a_folder(tmp_path: Path) -> None:
    top = tree(tmp_path, [folder("usr"), folder("usr/lib"), link("lib", "usr/lib"), link("abs", "/usr/lib")], [file("lib/a")])
    assert (top / "usr/lib/a").is_file()
    assert (top / "lib").is_symlink()
    top2 = tmp_path / "again"
    top2.mkdir()
    assert place(top, "abs/a") == top / "usr/lib/a"


def test_a_folder_takes_the_place_of_a_link(tmp_path: Path) -> None:
    top = tree(tmp_path, [folder("a"), link("l", "a")], [folder("l"), file("l/x")])
    assert not (top / "l").is_symlink()
    assert names(top) == {"a", "l", "l/x"}


def test_privileges_and_others_writing_are_taken(tmp_path: Path) -> None:
    top = tree(tmp_path, [file("su", b"", 0o6755), folder("t", 0o1777), file("w", b"", 0o666)])
    assert [stat.S_IMODE((top / name).stat().st_mode) for name in ("su", "t", "w")] == [0o755, 0o755, 0o644]


def test_devices_and_pipes_are_left_out(tmp_path: Path) -> None:
    kinds = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
    assert names(tree(tmp_path, [(kind.decode(), kind, "", 0o666) for kind in kinds])) == set()


def test_a_hard_link_is_one_file(tmp_path: Path) -> None:
    top = tree(tmp_path, [file("a", b"x"), ("b", tarfile.LNKTYPE, "a", 0o644), ("c", tarfile.LNKTYPE, "/b", 0o644)])
    assert (top / "c").read_bytes() == b"x"
    assert (top / "a").stat().st_nlink == 3


@pytest.mark.parametrize("name", ["../outside/file", "a/../../outside/file", "..", "a\nb", "a\u2028b"])
def test_names_that_lead_out_are_refused(name: str, tmp_path: Path) -> None:
    assert "no name of a file in an image" in refused(tmp_path, [file(name, b"x")])


def test_an_absolute_name_is_the_images(tmp_path: Path) -> None:
    assert names(tree(tmp_path, [file("/etc/passwd", b"x")])) == {"etc/passwd"}


@pytest.mark.parametrize("target", ["../outside", "/{tmp}/outside", "../../../../../../..{tmp}/outside", "."])
def test_links_are_followed_within_the_root_alone(target: str, tmp_path: Path) -> None:
    members = [link("out", target.format(tmp=tmp_path)), file("out/file", b"x")]
    top = tree(tmp_path, members, [file("out/.wh.file")], [file("out/.wh..wh..opq"), file("out/new")])
    assert any(name.endswith("new") for name in names(top))


@pytest.mark.parametrize("target", ["../outside/file", "missing", "d"])
def test_a_hard_link_stays_within_the_root(target: str, tmp_path: Path) -> None:
    refused(tmp_path, [folder("d"), ("h", tarfile.LNKTYPE, target, 0o644)])


def test_a_hard_link_through_a_link_stays_within_the_root(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path, [link("o", "../outside"), ("h", tarfile.LNKTYPE, "o/file", 0o644)])


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "d/.wh."])
def test_a_mark_that_removes_no_file_is_refused(name: str, tmp_path: Path) -> None:
    assert "file" in refused(tmp_path, [folder("d")], [file(name)])
    assert (tmp_path / "image/d").is_dir()


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([link("a", "b"), link("b", "a"), file("a/x")], "too many links"),
        ([file("a"), file("a/x")], "is no folder"),
        ([file("/".join("d" * 300))], "folders deep"),
        ([file("n" * 300)], "name too long"),
        ([link("l", "x" * 5000)], "name too long"),
    ],
)
def test_impossible_places_are_refused(members: list[Member], reason: str, tmp_path: Path) -> None:
    assert reason in refused(tmp_path, members)


def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1000)
    assert "takes more than 1,000 bytes" in refused(tmp_path, [file("a", bytes(600))], [file("b", bytes(600))])


def test_a_sparse_file_counts_with_its_holes(tmp_path: Path) -> None:
    info = tarfile.TarInfo("sparse")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(2**40), "GNU.sparse.numblocks": "1"}
        info.size = 1
        archive.addfile(info, io.BytesIO(b"x"))
    assert "takes more than" in refused(tmp_path, out.getvalue())


def test_a_cut_layer_is_refused(tmp_path: Path) -> None:
    content = layer([file("a", bytes(100_000))])
    assert "unexpected end of data" in refused(tmp_path, content[:50_000])


def test_odd_owners_and_times_are_kept_in_range(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, uid, mtime in (("a", 2**40, 2**50), ("b", -5, -5), ("c", 1000, 7)):
            info = tarfile.TarInfo(name)
            info.uid, info.gid, info.mtime = uid, uid, mtime
            archive.addfile(info)
    top = tree(tmp_path, out.getvalue())
    found = [((top / name).stat().st_uid, int((top / name).stat().st_mtime)) for name in "abc"]
    assert found == [(0, 2**32 - 1), (0, 0), (1000 if os.geteuid() == 0 else os.geteuid(), 7)]


def test_the_systems_folders_are_folders(tmp_path: Path) -> None:
    top = tree(tmp_path, [link("proc", "/outside"), file("dev"), link("run", "tmp")])
    for name in ("proc", "sys", "dev", "tmp", "run"):
        assert (top / name).is_dir()
        assert not (top / name).is_symlink()


def test_a_folder_is_copied_as_roots(tmp_path: Path) -> None:
    source = tmp_path / "root"
    (source / "bin").mkdir(parents=True)
    (source / "bin/a").write_text("x")
    (source / "bin/a").chmod(0o4777)
    (source / "l").symlink_to("/etc/passwd")
    if os.geteuid() == 0:
        os.chown(source / "bin/a", 1000, 1000)
    os.mkfifo(source / "pipe")
    top = tmp_path / "image"
    unpack(ContainerImage("", (), {}, source), top)
    assert names(top) == {"bin", "bin/a", "l"}
    status = (top / "bin/a").stat()
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (os.geteuid(), 0o755)
