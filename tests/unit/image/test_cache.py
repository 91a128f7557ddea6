"""The cache of images: whole or not at all, one builder at a time, never removed through a mount."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from twinbed.hosts import packages
from twinbed.hosts.cache import OF_ROOT, cache_root
from twinbed.hosts.error import HostError
from twinbed.image import base, cache
from twinbed.image.failure import ImageFailed
from twinbed.image.specification import TWINBED, Specification


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWINBED_CACHE", str(tmp_path))
    return tmp_path


def silent(_: str) -> None:
    pass


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINBED_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    monkeypatch.setenv("HOME", "/three")
    assert cache_root() == Path("/one")
    monkeypatch.delenv("TWINBED_CACHE")
    if os.geteuid() == 0:
        assert cache_root() == OF_ROOT, "whatever sudo leaves of a user's environment"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cache_root() == Path("/two/twinbed")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path("/three/.cache/twinbed")


def test_a_published_folder_is_found_by_its_key() -> None:
    assert cache.current("key") is None
    with cache.building(silent) as work:
        built = work / "base"
        built.mkdir()
        (built / "file").write_text("content")
        final = cache.publish(built, "bases", "key", {"digest": "d1"})
    assert cache.current("key") == final
    assert (final / "file").read_text() == "content"
    assert cache.checked(final)["digest"] == "d1"
    assert list((cache_root() / "tmp").iterdir()) == []


def test_a_published_folder_is_never_changed() -> None:
    for content in ("first", "second"):
        with cache.building(silent) as work:
            built = work / "base"
            built.mkdir()
            (built / "file").write_text(content)
            final = cache.publish(built, "bases", "key", {"digest": "d1"})
    assert (final / "file").read_text() == "first"


def test_a_failed_build_leaves_nothing() -> None:
    with pytest.raises(ZeroDivisionError), cache.building(silent) as work:
        (work / "half").write_text("done")
        1 / 0  # noqa: B018
    assert list((cache_root() / "tmp").iterdir()) == []
    assert cache.current("key") is None


def test_what_a_user_s_study_asks_for_is_the_user_s_when_root_builds_it(folder: Path) -> None:
    """Root builds into a user's cache where the user's own try has been refused. Notes of what was checked go into a folder
    that the user may write in."""
    with pytest.raises(ImageFailed), cache.building(silent):
        raise ImageFailed("building an image needs root")
    assert (folder / "checked").is_dir()


def test_what_a_killed_build_left_is_swept(folder: Path) -> None:
    (folder / "tmp/dead/rootfs").mkdir(parents=True)
    (folder / "tmp/dead/rootfs/file").write_text("left")
    with cache.building(silent) as work:
        assert list((folder / "tmp").iterdir()) == [work]


def test_nothing_is_swept_through_a_mount(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = folder / "tmp/dead"
    (left / "dev").mkdir(parents=True)
    table = folder / "mountinfo"
    table.write_text(f"36 35 0:5 / {left}/dev rw,nosuid shared:2 - devtmpfs udev rw\n")
    monkeypatch.setattr(cache, "MOUNTS", table)
    with pytest.raises(ImageFailed, match="dev is mounted in it") as failure, cache.building(silent):
        pass
    assert failure.value.advice == f"umount {left}/dev"
    assert (left / "dev").is_dir()


def test_a_second_builder_waits_for_the_first() -> None:
    said: list[str] = []
    waiting = threading.Event()
    order: list[str] = []

    def second() -> None:
        def say(line: str) -> None:
            said.append(line)
            waiting.set()

        with cache.building(say):
            order.append("second")

    thread = threading.Thread(target=second)
    with cache.building(silent):
        thread.start()
        assert waiting.wait(timeout=60)
        order.append("first")
    thread.join(timeout=60)
    assert order == ["first", "second"]
    assert said == ["another build is under way; waiting for it"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}'])
def test_a_manifest_that_cannot_be_read_is_named(folder: Path, content: str) -> None:
    image = folder / "images/d1"
    image.mkdir(parents=True)
    (image / "manifest.json").write_text(content)
    with pytest.raises(ImageFailed, match=r"manifest\.json") as failure:
        cache.images()
    assert str(image) in failure.value.advice


def test_an_image_of_an_older_version_is_none(folder: Path) -> None:
    (folder / "images/d1").mkdir(parents=True)
    (folder / "images/d1/manifest.json").write_text('{"format": 1}')
    assert cache.images() == []


@pytest.fixture
def finished() -> Path:
    with cache.building(silent) as work:
        built = work / "base"
        (built / "etc").mkdir(parents=True)
        for name in ("etc/a", "etc/b"):
            (built / name).write_text(name)
        (built / "link").symlink_to("etc/a")
        return cache.publish(built, "bases", "key", {"digest": "d1"})


def test_contents_are_listed_with_their_hashes(finished: Path) -> None:
    a, b, link = (hashlib.sha256(text).hexdigest() for text in (b"etc/a", b"etc/b", b"etc/a"))
    lines = (finished / "contents").read_text().splitlines()
    assert lines[1:] == [f"100644 {a} etc/a", f"100644 {b} etc/b", f"120777 {link} link"]
    assert lines[0].startswith("040755 ") and lines[0].endswith(" etc")


def rewritten(path: Path) -> None:
    """Another content of the same length, with the old one's times."""
    about = path.stat()
    path.write_text("etc/x")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


@pytest.mark.parametrize(
    ("named", "change"),
    [
        ("etc/b", lambda folder: rewritten(folder / "etc/b")),
        ("etc/b", lambda folder: (folder / "etc/b").unlink()),
        ("etc/b", lambda folder: (folder / "etc/b").chmod(0o4755)),
        ("etc/c", lambda folder: (folder / "etc/c").write_text("")),
        ("link", lambda folder: ((folder / "link").unlink(), (folder / "link").symlink_to("etc/b"))),
        ("contents", lambda folder: (folder / "contents").write_text("")),
    ],
    ids=["content", "missing", "mode", "one more", "link", "the list itself"],
)
def test_a_changed_file_is_found_and_named(finished: Path, named: str, change: Callable[[Path], object]) -> None:
    cache.checked(finished)
    change(finished)
    if named == "contents":
        (finished / "etc/a").touch()  # the list is looked at when a file may have changed
    for _ in range(2):
        with pytest.raises(ImageFailed, match=f"/{named}: it changed after the build") as failure:
            cache.checked(finished)
        assert f"rm -r {finished}" in failure.value.advice


def test_a_changed_image_is_listed_and_not_opened(folder: Path) -> None:
    with cache.building(silent) as work:
        (work / "image" / "rootfs").mkdir(parents=True)
        about = {"digest": "d2", "disk_type": "erofs", "kernel_version": "6.1", "packages": {}}
        image = cache.publish(work / "image", "images", "key", about)
    assert [each.digest for each in cache.images()] == [cache.opened(image).digest] == ["d2"]
    (image / "rootfs" / "more").touch()
    assert [each.digest for each in cache.images()] == ["d2"]
    with pytest.raises(ImageFailed, match="rootfs/more: it changed after the build"):
        cache.opened(image)


def test_files_are_read_again_only_when_one_may_have_changed(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.checked(finished)
    listing, read = cache.listing, []
    monkeypatch.setattr(cache, "listing", lambda folder: read.append(folder) or listing(folder))
    cache.checked(finished)
    assert read == []
    (finished / "etc/a").touch()
    cache.checked(finished)
    cache.checked(finished)
    assert read == [finished]


@pytest.mark.privileged
def test_a_user_who_may_not_read_a_file_checks_the_others(finished: Path) -> None:
    (finished / "etc/b").chmod(0o600)
    (finished / "closed").mkdir(mode=0o700)
    (finished / "closed" / "file").touch()
    listed = cache.listing(finished)
    for path in (finished, *finished.parents):
        path.chmod(0o755)
        if path.name.startswith("pytest-of"):
            break
    program = f"""
import os, sys
from pathlib import Path
from twinbed.image import cache
os.setuid(61234)
folder = Path({str(finished)!r})
print(cache.differing(folder, {listed!r}), cache.differing(folder, {listed!r}.replace("100644", "100755")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "None etc/a\n"


def test_a_folder_without_manifest_is_not_an_image(folder: Path) -> None:
    (folder / "images/d1").mkdir(parents=True)
    (folder / "current").mkdir()
    (folder / "current/key").symlink_to("../images/d1")
    assert cache.images() == []
    assert cache.current("key") is None


def test_a_cache_that_cannot_be_written_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("TWINBED_CACHE", str(folder / "file"))
    with pytest.raises(HostError, match="must be a folder") as failure, cache.building(silent):
        pass
    assert failure.value.exit_code == 3
    assert "TWINBED_CACHE" in failure.value.advice


def test_missing_tools_are_named_with_the_packages_they_come_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(packages, "_USUAL_FOLDERS", str(folder))
    with pytest.raises(ImageFailed, match=r"mmdebstrap, mkfs\.erofs, apt-get") as failure:
        base.require_tools()
    assert failure.value.advice == "apt-get install apt dpkg erofs-utils mmdebstrap util-linux"


def test_without_root_the_command_that_needs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageFailed, match="needs root") as failure:
        base.require_tools()
    assert failure.value.advice.startswith(f"sudo {sys.executable} -m twinbed.image "), "and into root's own cache"


def test_a_full_disk_is_said_before_anything_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(base, "SPACE_BYTES", 10**18)
    with pytest.raises(ImageFailed, match=r"building an image needs .* GB, and .* GB are free"):
        base.require_tools()


def test_another_package_is_another_key() -> None:
    assert Specification().key == TWINBED.key
    assert Specification(packages=(*TWINBED.packages, "nmap")).key != TWINBED.key
