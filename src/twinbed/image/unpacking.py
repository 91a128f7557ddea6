"""Puts a container image's root into a folder: layers in their order, with what upper ones remove.

Source of the rules: opencontainers/image-spec, layer.md. Links are followed within the folder alone, as if it were the root.
Files lose setuid, setgid, file capabilities and others' right to write, as all files of an image do. Devices, pipes and sockets
are left out.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from twinbed.readers.container_image import MOST_BYTES, ContainerImage, Unreadable, tar, walk

_REMOVES = ".wh."
_REMOVES_ALL = ".wh..wh..opq"
_MOST_LINKS = 40
"""The kernel's own limit (path_resolution(7))."""
_DEEPEST = 200
_CHUNK_BYTES = 2**20
_SHARE = 0.5
"""The most that an image may take of the free space."""
_SYSTEM = ("proc", "sys", "dev", "tmp", "run")
"""Folders that a host shows in the image's root."""
_LATEST = 2**32 - 1


def unpack(image: ContainerImage, top: Path) -> None:
    """Write the image's root to a folder that does not exist yet. Raises Unreadable, and OSError for a full disk."""
    top.mkdir()
    root = _Root(top)
    if image.folder:
        root.copy(image.folder)
    for opened in image.layers:
        with opened(top.parent) as layer:
            root.apply(layer)
    for name in _SYSTEM:
        root.make_folder(top / name)
    hosts = place(top, "etc/hosts", make=True)
    if not os.path.lexists(hosts):
        hosts.write_text("127.0.0.1 localhost\n::1 localhost\n")


def place(top: Path, name: str, *, make: bool = False) -> Path:
    """Return the path of a member, whose folders are found with ``top`` as the root; a link in the last part stays.

    ``make`` missing folders. Raises Unreadable for names that lead out of the root, and FileNotFoundError."""
    *folders, last = _parts(name)
    here, todo, links = top, list(reversed(folders)), 0
    while todo:
        part = todo.pop()
        if part == "..":
            here = here.parent if here != top else top
            continue
        below = here / part
        if len(below.parts) - len(top.parts) > _DEEPEST:
            raise Unreadable(f"{name[:200]!r} is more than {_DEEPEST} folders deep")
        if make and not os.path.lexists(below):
            below.mkdir(mode=0o755)
        mode = below.lstat().st_mode
        if stat.S_ISLNK(mode):
            links += 1
            if links > _MOST_LINKS:
                raise Unreadable(f"{name[:200]!r}: too many links")
            target = str(below.readlink())
            here = top if target.startswith("/") else here
            todo += [part for part in reversed(target.split("/")) if part not in ("", ".")]
        elif stat.S_ISDIR(mode):
            here = below
        else:
            raise Unreadable(f"{name[:200]!r}: {part!r} is no folder")
    return here / last


def _parts(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or len(name.splitlines()) != 1:
        raise Unreadable(f"{name[:200]!r} is no name of a file in an image")
    return parts


class _Root:
    """A root that is being written."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self._left_bytes = min(MOST_BYTES, int(shutil.disk_usage(top).free * _SHARE))
        self._as_root = os.geteuid() == 0

    def apply(self, layer: BinaryIO) -> None:
        """Add a layer: first what it removes of those below, wherever it stands in the layer, then its files."""
        for _, member in _members(layer):
            folder, _, name = member.name.rpartition("/")
            if name.startswith(_REMOVES):
                self._remove(f"{folder}/", name)
        for archive, member in _members(layer):
            if not member.name.rpartition("/")[2].startswith(_REMOVES):
                with _about(member.name):
                    self._add(archive, member)

    def _remove(self, folder: str, name: str) -> None:
        removed = name.removeprefix(_REMOVES)
        with _about(folder + name), contextlib.suppress(FileNotFoundError):
            if name == _REMOVES_ALL:
                for path in list(place(self.top, f"{folder}x").parent.iterdir()):
                    _drop(path)
            elif removed in ("", "."):
                raise Unreadable(f"{name!r} names no file to remove")
            else:
                _drop(place(self.top, folder + removed))

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = place(self.top, member.name, make=True)
        owner = (member.uid, member.gid)
        if member.isdir():
            self.make_folder(path, member.mode, owner)
        elif member.isreg():
            _drop(path)
            source = archive.extractfile(member)
            assert source is not None
            self._write(path, source, member.size, member.mode, owner, member.mtime)
        elif member.issym():
            _drop(path)
            path.symlink_to(member.linkname)
            self._own(path, owner)
        elif member.islnk():
            target = place(self.top, member.linkname)
            if stat.S_ISDIR(target.lstat().st_mode):
                raise Unreadable(f"{member.name[:200]!r} is a hard link to a folder")
            if target != path:
                _drop(path)
                os.link(target, path, follow_symlinks=False)

    def copy(self, folder: Path) -> None:
        """Copy a folder; everything becomes root's."""
        for path, status in walk(folder):
            name = str(path.relative_to(folder))
            with _about(name):
                to = place(self.top, name, make=True)
                if stat.S_ISDIR(status.st_mode):
                    self.make_folder(to, status.st_mode)
                elif stat.S_ISLNK(status.st_mode):
                    to.symlink_to(path.readlink())
                else:
                    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as source:
                        self._write(to, source, status.st_size, status.st_mode, (0, 0), status.st_mtime)

    def make_folder(self, path: Path, mode: int = 0o755, owner: tuple[int, int] = (0, 0)) -> None:
        if not path.is_dir() or path.is_symlink():
            _drop(path)
            path.mkdir()
        self._own(path, owner)
        path.chmod(stat.S_IMODE(mode) & 0o755 | 0o700)

    def _write(self, path: Path, source: IO[bytes], size: int, mode: int, owner: tuple[int, int], time_s: float) -> None:
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise Unreadable(f"the image takes more than {MOST_BYTES:,} bytes, or more than half of the free space")
        with path.open("xb") as sink:
            shutil.copyfileobj(source, sink, _CHUNK_BYTES)
        self._own(path, owner)
        path.chmod(stat.S_IMODE(mode) & 0o755)
        seconds = min(max(int(time_s), 0), _LATEST)
        os.utime(path, (seconds, seconds))

    def _own(self, path: Path, owner: tuple[int, int]) -> None:
        if self._as_root:
            os.chown(path, *(number if 0 <= number < _LATEST else 0 for number in owner), follow_symlinks=False)


def _members(layer: BinaryIO) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield the members of a layer but for the root itself."""
    return (
        (archive, member) for archive, member in tar(layer) if any(part not in ("", ".") for part in member.name.split("/"))
    )


@contextlib.contextmanager
def _about(name: str) -> Iterator[None]:
    """Name the file that cannot be written: its name may be too long, its link's target missing, its content cut off."""
    try:
        yield
    except (OSError, tarfile.TarError) as error:
        raise Unreadable(f"{name[:200]!r}: {getattr(error, 'strerror', None) or error}") from None


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
