"""The one way to open, list, create, rename and remove below a folder into which others may have written.

A folder of results may come from a stranger, and any name in it may be a link to a file of this machine, a named pipe without
end, or a device. A ``Tree`` reaches every name by descriptor from the root and follows no link. It raises ``NotPlain`` for
anything but the plain file or folder that the caller asks for. Links may lead to the root itself, which the user has named.

Names are relative to the root and separated by ``/``, without empty parts, ``.`` and ``..``; ``""`` is the root itself.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from twinbed.model.error import TwinbedError

Kind = Literal["file", "folder", "symbolic link", "named pipe", "socket", "device"]
MOST_BYTES = 2**30
"""The largest file that is read at once, unless the caller sets another limit."""
MOST_DEPTH = 64
"""The deepest nesting of folders that is walked."""
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags for a folder on the way to a name, which need not be readable."""
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
assert set(get_args(Kind)) == set(_KINDS.values())


class NotPlain(TwinbedError):
    """A name below a folder is not the plain file or folder that it should be. Nothing was read or changed.

    It is not an OSError, whose handlers would report that a file cannot be read or written.
    """

    def __init__(self, path: Path, fault: str, advice: str = "move it away, and ask where this folder comes from") -> None:
        super().__init__(f"{path} {fault}", advice=advice)
        self.path, self.strerror = path, fault

    def __reduce__(self) -> tuple[type[NotPlain], tuple[Path, str, str]]:
        return NotPlain, (self.path, self.strerror, self.advice)


def kind_of(mode: int) -> Kind:
    """Return a file's kind, by ``st_mode``."""
    return _KINDS[stat.S_IFMT(mode)]


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder into which others may have written."""

    path: Path
    held: int | None = None
    """A descriptor of the folder, which ``inside`` holds open."""

    def open(self, name: str) -> BinaryIO:
        """Open a plain file for reading. Raises NotPlain, FileNotFoundError and other OSErrors."""
        return os.fdopen(self._opened(name, os.O_RDONLY)[0], "rb")

    def read(self, name: str, most: int = MOST_BYTES) -> bytes:
        """Return the bytes of a plain file. Raises as ``open``, and NotPlain where there are more than ``most``."""
        file, status = self._opened(name, os.O_RDONLY)
        try:
            content = b"" if status.st_size > most else _content(file, status.st_size, most)
        finally:
            os.close(file)
        if status.st_size > most or len(content) > most:
            raise NotPlain(self.path / name, f"has more than {most:,} bytes", "look at what it is before you use it")
        return content

    def create(self, name: str, mode: int = 0o666) -> BinaryIO:
        """Open a new file for writing, in place of a file or link of that name. Raises NotPlain where a folder has the name."""
        with self._at(name) as (folder, leaf), _named(self.path / name):
            return self._created(folder, leaf, name, mode)

    def write(self, name: str, content: bytes | str, *, mode: int = 0o666, sync: bool = False) -> None:
        """Write a file at once or not at all, in place of a file or link of that name.

        Raises NotPlain where a folder has the name, and FileExistsError where another process writes the file meanwhile."""
        with self._at(name) as (folder, leaf), _named(self.path / name):
            if _kind_there(folder, leaf) == "folder":
                raise self._not(name, "folder", "file")
            partial = f".{leaf}.partial"
            with self._created(folder, partial, f"{name.removesuffix(leaf)}{partial}", mode) as file:
                try:
                    file.write(content.encode() if isinstance(content, str) else content)
                    file.flush()
                    if sync:
                        os.fsync(file.fileno())
                    present = _status(folder, partial)
                    if present is None or not os.path.samestat(present, os.fstat(file.fileno())):
                        raise FileExistsError(errno.EEXIST, "another process writes it")
                    os.rename(partial, leaf, src_dir_fd=folder, dst_dir_fd=folder)
                except FileExistsError:
                    raise
                except BaseException:
                    with contextlib.suppress(OSError):
                        remove_whole(folder, partial)
                    raise

    def append(self, name: str) -> BinaryIO:
        """Open a plain file for appending; make it where it is not there.

        Raises NotPlain also for a file with several names (hard links), and for one that neither the folder's owner nor this
        process' user owns."""
        return os.fdopen(self._own(name, os.O_WRONLY | os.O_APPEND), "ab")

    def lock(self, name: str) -> int:
        """Open a plain file for locking, and return the descriptor; make it where it is not there. Raises as ``append``."""
        return self._own(name, os.O_RDWR)

    def status(self, name: str) -> os.stat_result | None:
        """Return the ``stat`` of a name, following no link; None where there is none."""
        if not name:
            with self._folder("") as folder:
                return os.fstat(folder)
        try:
            with self._at(name) as (folder, leaf), _named(self.path / name):
                return _status(folder, leaf)
        except FileNotFoundError:
            return None

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a name; None where it does not exist. Raises NotPlain where something above it is not a folder."""
        status = self.status(name)
        return None if status is None else kind_of(status.st_mode)

    def entries(self, name: str = "") -> dict[str, Kind]:
        """Return name -> kind of everything in a folder, sorted; empty where there is no such folder."""
        try:
            with self._listed(name) as folder, os.scandir(folder) as listing:
                return {entry.name: _kind_of_entry(entry) for entry in sorted(listing, key=lambda entry: entry.name)}
        except FileNotFoundError:
            return {}

    def files(self, name: str = "") -> Iterator[tuple[str, os.stat_result]]:
        """Yield all plain files below a folder, in order: each one's path from that folder on, and its ``stat``.

        Raises NotPlain for anything but files and folders, and FileNotFoundError where there is no such folder."""
        for path, status in self.all_below(name):
            if not stat.S_ISREG(status.st_mode):
                raise self._not(f"{name}/{path}" if name else path, kind_of(status.st_mode), "file or folder")
            yield path, status

    def all_below(self, name: str = "", *, folders: bool = False) -> Iterator[tuple[str, os.stat_result]]:
        """Yield everything below a folder, in order, following no link: each path from there on, and its ``stat``.

        Folders are left out unless asked for; then each comes before its content."""
        with self._listed(name) as folder:
            for path, status in self._below(folder, self.path / name, "", MOST_DEPTH):
                if folders or not stat.S_ISDIR(status.st_mode):
                    yield path, status

    def make(self, name: str, mode: int = 0o777) -> None:
        """Make a folder and those above it, below the root; an existing folder does not change."""
        with contextlib.ExitStack() as held:
            made = held.enter_context(self.inside(""))
            for part in _parts(self.path, name):
                with _named(made.path / part), contextlib.suppress(FileExistsError):
                    os.mkdir(part, mode, dir_fd=made.held)
                made = held.enter_context(made.inside(part))

    def open_as(self, name: str, like: str) -> None:
        """Give a folder the access rights of another folder."""
        with self._listed(name) as folder, self._listed(like) as other, _named(self.path / name):
            os.fchmod(folder, os.fstat(other).st_mode & 0o755)

    def rename(self, name: str, new: str) -> None:
        """Give a file or folder another name, in place of a file or link that has it."""
        with self._at(name) as (folder, leaf), self._at(new) as (to, new_leaf), _named(self.path / new):
            os.rename(leaf, new_leaf, src_dir_fd=folder, dst_dir_fd=to)

    def link(self, name: str, to: Tree, new: str) -> None:
        """Give a plain file one more name, in ``to``. Raises NotPlain for other kinds, and FileExistsError."""
        with self._at(name) as (folder, leaf), to._at(new) as (other, new_leaf):
            with _named(self.path / name):
                self._must_be_plain(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode, name)
            with _named(to.path / new):
                os.link(leaf, new_leaf, src_dir_fd=folder, dst_dir_fd=other, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Remove a file, a link itself, or a folder with its content; do nothing where there is none."""
        with contextlib.suppress(FileNotFoundError), self._at(name) as (folder, leaf), _named(self.path / name):
            remove_whole(folder, leaf)

    def sync(self, name: str = "") -> None:
        """Bring a folder's own entries to the disk."""
        with self._listed(name) as folder, _named(self.path / name):
            os.fsync(folder)

    @contextlib.contextmanager
    def inside(self, name: str) -> Iterator[Tree]:
        """Hold a folder below this one open, as its own tree: for many names in it, and so that it cannot be replaced."""
        with self._folder(name) as folder:
            yield Tree(self.path / name, folder)

    @contextlib.contextmanager
    def _folder(self, name: str) -> Iterator[int]:
        """Open a folder part by part, and yield its descriptor."""
        folder = self._reached(_parts(self.path, name))
        try:
            yield folder
        finally:
            os.close(folder)

    def _reached(self, parts: Sequence[str]) -> int:
        """Return a new descriptor of a folder. It is called for each of 10,000 runs, so it makes a path only for errors."""
        if self.held is None or not parts:
            with _named(self.path):
                folder = os.open(self.path, _FOLDER) if self.held is None else os.dup(self.held)
        else:
            folder = self.held
        for at, part in enumerate(parts, 1):
            above = folder
            try:
                folder = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
            except OSError as error:
                path = self.path.joinpath(*parts[:at])
                kind = _kind_there(above, part)
                if error.errno in (errno.ELOOP, errno.ENOTDIR) and kind not in (None, "folder"):
                    raise NotPlain(path, f"is a {kind}, where a folder belongs") from None
                error.filename = str(path)
                raise
            finally:
                if above != self.held:
                    os.close(above)
        return folder

    @contextlib.contextmanager
    def _listed(self, name: str) -> Iterator[int]:
        """Open a folder to read its entries, and yield its descriptor."""
        with self._folder(name) as folder, _named(self.path / name):
            listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            yield listed
        finally:
            os.close(listed)

    @contextlib.contextmanager
    def _at(self, name: str) -> Iterator[tuple[int, str]]:
        """Yield the descriptor of the folder that a name is in, and the last part of the name."""
        *above, leaf = _parts(self.path, name) or [""]
        if not leaf:
            raise NotPlain(self.path, "is the whole folder, where a name in it belongs")
        with self._folder("/".join(above)) as folder:
            yield folder, leaf

    def _opened(self, name: str, flags: int) -> tuple[int, os.stat_result]:
        """Return a plain file's descriptor and ``stat``. Its kind is checked before opening: opening a device has effects."""
        *above, leaf = _parts(self.path, name) or [""]
        folder = self._reached(above)
        try:
            self._must_be_plain(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode, name)
            file = os.open(leaf, flags | _PLAIN, dir_fd=folder)
        except OSError as error:
            error.filename = str(self.path / name)
            raise
        finally:
            os.close(folder)
        status = os.fstat(file)
        try:
            self._must_be_plain(status.st_mode, name)  # another file may have replaced it in between
        except NotPlain:
            os.close(file)
            raise
        return file, status

    def _own(self, name: str, flags: int) -> int:
        with self._at(name) as (folder, leaf):
            with _named(self.path / name), contextlib.suppress(FileExistsError):
                return os.open(leaf, flags | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666, dir_fd=folder)
            owner = os.fstat(folder).st_uid
        file, status = self._opened(name, flags)
        fault = ""
        if status.st_nlink > 1:
            fault = "has other names elsewhere (hard links), which would change too"
        elif status.st_uid not in (os.geteuid(), owner):
            fault = f"belongs to user {status.st_uid}, who owns neither this folder nor this process"
        if fault:
            os.close(file)
            raise NotPlain(
                self.path / name, fault, f"give the folder a file of its own: mv {name} {name}.old; cp {name}.old {name}"
            )
        return file

    def _created(self, folder: int, leaf: str, name: str, mode: int) -> BinaryIO:
        """Create a new file, in place of a file or link of that name."""
        status = _status(folder, leaf)
        if status is not None and stat.S_ISDIR(status.st_mode):
            raise self._not(name, "folder", "file")
        if status is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(leaf, dir_fd=folder)
        return os.fdopen(os.open(leaf, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, mode, dir_fd=folder), "wb")

    def _must_be_plain(self, mode: int, name: str) -> None:
        if not stat.S_ISREG(mode):
            raise self._not(name, kind_of(mode), "file")

    def _not(self, name: str, kind: str, wanted: str) -> NotPlain:
        return NotPlain(self.path / name, f"is a {kind}, where a {wanted} belongs")

    def _below(self, folder: int, path: Path, at: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(folder) as listing:
            names = sorted(entry.name for entry in listing)
        for name in names:
            with _named(path / at / name):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            yield at + name, status
            if not stat.S_ISDIR(status.st_mode):
                continue
            if not depth:
                raise NotPlain(path / at / name, f"is a folder within {MOST_DEPTH} others")
            with _named(path / at / name):
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
            try:
                yield from self._below(inner, path, f"{at}{name}/", depth - 1)
            finally:
                os.close(inner)


def remove_whole(folder: int, name: str) -> None:
    """Remove a file, or a folder with its content, however deep: each folder in it is first moved up next to it.

    ``folder`` is the descriptor of the folder that the name is in. Raises OSError."""
    token, moved, pending = secrets.token_hex(8), 0, [name]
    if not _unlinked_or_folder(folder, name):
        return
    while pending:
        last = pending.pop()
        inner = os.open(last, os.O_RDONLY | os.O_DIRECTORY | _PLAIN, dir_fd=folder)
        try:
            while names := _some_names(inner):
                for inner_name in names:
                    if _unlinked_or_folder(inner, inner_name):
                        pending.append(f".removed-{token}-{moved}")
                        moved += 1
                        os.rename(inner_name, pending[-1], src_dir_fd=inner, dst_dir_fd=folder)
        finally:
            os.close(inner)
        os.rmdir(last, dir_fd=folder)


def _unlinked_or_folder(folder: int, name: str) -> bool:
    """Unlink a name that is not a folder. Return whether it is a folder; its owner may then change and move everything in
    it."""
    held = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        status = os.fstat(held)
        if stat.S_ISDIR(status.st_mode):
            if status.st_uid == os.geteuid() and status.st_mode & 0o700 != 0o700:
                os.chmod(f"/proc/self/fd/{held}", 0o700)  # noqa: PTH101 -- by descriptor
            return True
    finally:
        os.close(held)
    os.unlink(name, dir_fd=folder)
    return False


def _some_names(folder: int) -> list[str]:
    """Return the first names of a folder; none where it is empty."""
    with os.scandir(folder) as listing:
        return [entry.name for entry in islice(listing, 10_000)]


def _parts(root: Path, name: str) -> list[str]:
    parts = name.split("/") if name else []
    if "\0" in name or not {"", ".", ".."}.isdisjoint(parts):
        raise NotPlain(root, f"cannot contain {name!r:.200}", "names lead from folder to folder, and never up")
    return parts


def _content(file: int, size: int, most: int) -> bytes:
    """Return the content of a file of ``size`` bytes, which may have grown; at most one byte more than ``most``."""
    content = os.read(file, size + 1)
    while len(content) <= most and (more := os.read(file, min(most + 1 - len(content), 2**20))):
        content += more
    return content


def _status(folder: int, leaf: str) -> os.stat_result | None:
    try:
        return os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _kind_there(folder: int, leaf: str) -> Kind | None:
    try:
        return kind_of(os.stat(leaf, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return None


def _kind_of_entry(entry: os.DirEntry[str]) -> Kind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    return "folder" if entry.is_dir(follow_symlinks=False) else kind_of(entry.stat(follow_symlinks=False).st_mode)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the whole path into errors of calls with a descriptor and a name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
