"""Artifacts change hands: files that programs of a run have left become this user's, as plain files with plain modes.

While the run's programs live, they choose names, modes, owners and attributes in its folders. The run's folder is closed to
other users and keeps all of this from the machine. Once the programs have ended, ``take_over`` checks each file by descriptor.
It removes and lists everything that is no plain file of its size.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from twinbed.hosts.files import MOST_FILES, ROOM_SHARE, is_plain
from twinbed.tree import kind_of, remove_whole

MOST_LEVELS = 8
"""The depth of folders among a host's artifacts; their paths stay below PATH_MAX."""
MOST_HOLES_BYTES = 64 * 2**20
"""The holes that a file may have: whoever copies, packs or reads the file gets zeros for them."""
_MOST_PIECES = 10_000
"""The pieces of a file with holes that are examined."""
_MOST_NAMED = 20
_GIVE_RIGHTS = ("security.capability", "system.posix_acl_access", "system.posix_acl_default")
"""Attributes that give rights beyond a file's mode (capabilities(7), acl(5))."""
_FILE, _FOLDER = 0o644, 0o755
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HOLD = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""A descriptor of the file itself, which is not opened."""


def take_over(artifacts: Path, trusted: Collection[str]) -> list[str]:
    """Give everything below ``artifacts`` to the folder's owner, without setuid, setgid, capabilities, access lists and others'
    right to write. Return what was removed: each path with its reason. Raises OSError.

    Call it when no program of the run lives. Folders of the lab's own machines (``trusted``) have no limits."""
    top = os.open(artifacts, _OPEN_FOLDER)
    try:
        owner, umask, removed = os.fstat(top), _umask(), []
        for name in sorted(os.listdir(top)):  # noqa: PTH208 -- by descriptor
            removed += _Place(top, name, name in trusted, owner, umask).taken_over()
    finally:
        os.close(top)
    more = len(removed) - _MOST_NAMED
    return removed if more <= 0 else [*removed[:_MOST_NAMED], f"{more:,} more"]


class _Beyond(Exception):
    """A folder has more than a host may have."""


@dataclass
class _Place:
    """One host's folder among the artifacts."""

    top: int
    name: str
    trusted: bool
    owner: os.stat_result
    umask: int
    entries: int = 0
    announced_bytes: int = 0
    """The size of a copy of all files."""
    on_disk_bytes: int = 0
    seen: set[int] = field(default_factory=set)
    """Inodes of files with several names."""
    removed: list[str] = field(default_factory=list)

    def taken_over(self) -> list[str]:
        try:
            self._take(self.top, self.name, self.name, 0)
            self._hold_to_room()
        except _Beyond as beyond:
            remove_whole(self.top, self.name)
            return [f"all of {self.name} ({beyond})"]
        return self.removed

    def _take(self, folder: int, name: str, path: str, level: int) -> None:
        """Take over one file or folder with its content; ``path`` is shown to the user."""
        with _descriptor(folder, name, _HOLD) as held:
            status = os.fstat(held)
            if fault := self._fault(held, status, name, level):
                remove_whole(folder, name)
                self.removed.append(f"{path} ({fault})")
                return
            self._make_plain(held, status)
        if not stat.S_ISDIR(status.st_mode):
            self.announced_bytes += status.st_size
            if status.st_ino not in self.seen:
                self.on_disk_bytes += status.st_blocks * 512
            if status.st_nlink > 1:
                self.seen.add(status.st_ino)
            return
        with _descriptor(folder, name, _OPEN_FOLDER) as inner:
            for name_inside in self._names(inner):
                self._take(
                    inner, name_inside, f"{path}/{name_inside if is_plain(name_inside) else ascii(name_inside[:80])}", level + 1
                )

    def _names(self, folder: int) -> list[str]:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, None if self.trusted else MOST_FILES + 1 - self.entries))
        self.entries += len(names)
        if self.entries > MOST_FILES and not self.trusted:
            raise _Beyond(f"more than {MOST_FILES:,} files and folders")
        return names

    def _fault(self, held: int, status: os.stat_result, name: str, level: int) -> str | None:
        """Return why it cannot be an artifact; None if it can."""
        if stat.S_ISDIR(status.st_mode):
            if level > MOST_LEVELS:
                return f"a folder within {MOST_LEVELS} others"
        elif not stat.S_ISREG(status.st_mode):
            return f"a {kind_of(status.st_mode)}"
        if not self.trusted and not is_plain(name):
            return "no name of an artifact: such a name has 1 to 200 letters, digits and _.,=@+:- alone"
        if stat.S_ISREG(status.st_mode) and status.st_size - status.st_blocks * 512 > MOST_HOLES_BYTES:
            os.chmod(_by(held), 0o600)  # noqa: PTH101
            if _holes_bytes(held, status.st_size) > MOST_HOLES_BYTES:
                return f"a sparse file: of its {status.st_size:,} bytes {status.st_blocks * 512:,} are on the disk"
        return None

    def _make_plain(self, held: int, status: os.stat_result) -> None:
        itself = _by(held)
        if os.geteuid() == 0 and (status.st_uid, status.st_gid) != (self.owner.st_uid, self.owner.st_gid):
            os.chown(itself, self.owner.st_uid, self.owner.st_gid)
        try:
            for attribute in set(os.listxattr(itself)).intersection(_GIVE_RIGHTS):
                os.removexattr(itself, attribute)
        except OSError as error:
            if error.errno != errno.ENOTSUP:  # a file system without such attributes
                raise
        mode = _FOLDER if stat.S_ISDIR(status.st_mode) else _FILE
        os.chmod(itself, mode & ~self.umask | mode & 0o700)  # noqa: PTH101

    def _hold_to_room(self) -> None:
        """Check the limit that a guest's artifacts meet before they are fetched (``AgentHost.collect``)."""
        if self.trusted:
            return
        file_system = os.fstatvfs(self.top)
        room = int((file_system.f_bavail * file_system.f_frsize + self.on_disk_bytes) * ROOM_SHARE)
        if (most := max(self.announced_bytes, self.on_disk_bytes)) > room:
            raise _Beyond(f"{most:,} bytes of files, where half of the free space is {room:,}")


def _holes_bytes(held: int, size: int) -> int:
    file = os.open(_by(held), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        holes = at = 0
        for _ in range(_MOST_PIECES):
            try:
                data = os.lseek(file, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return holes + size - at
            holes += data - at
            at = os.lseek(file, data, os.SEEK_HOLE)
            if at >= size or holes > MOST_HOLES_BYTES:
                return holes
        return size
    finally:
        os.close(file)


def _by(descriptor: int) -> str:
    """Return a path that leads only to a file held open, for calls that take no such descriptor."""
    return f"/proc/self/fd/{descriptor}"


@contextlib.contextmanager
def _descriptor(folder: int, name: str, flags: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _umask() -> int:
    """Read the umask; the system call would change it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("Umask:")).split()[1], 8)
