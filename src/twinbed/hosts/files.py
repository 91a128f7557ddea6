"""Files that other programs had a hand in: names that come from a host, and folders into which its programs may write.

A host is not trusted with this machine.  A name that it gives becomes a path only if it is a plain one; a file in a folder
that it shares is made anew, never written to where a link of its points; and what it leaves there besides files and folders
is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from twinbed.hosts.error import HostError

MOST_FILES = 100_000
"""Files that a host may have among its artifacts."""
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=@+:-]{0,199}")
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def plain_name(name: str, host: str) -> str:
    """The name itself, if it is of 1 to 200 letters, digits and ``_.,=@+:-`` and begins with a letter, a digit or ``_``:
    nothing that leads to another folder. Raises HostError, with the host that gave it."""
    if _PLAIN.fullmatch(name) is None:
        raise HostError(
            f"{host}: {name[:80]!r} is no name of an artifact",
            advice="it has 1 to 200 letters, digits and _.,=@+:- alone; do not trust that host until you know why it says so",
        )
    return name


def create(path: Path) -> BinaryIO:
    """A new file, in place of what has its name. No link is followed, neither of that name nor of its folder's.
    Raises OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(path.name, flags, 0o644, dir_fd=folder), "wb")
    finally:
        os.close(folder)


def remove_what_is_no_file(folder: Path) -> list[str]:
    """What is neither a file nor a folder below ``folder`` is removed. Each one's path there, and what it was. To be called
    when nobody writes there any more."""
    removed = []
    for path, mode in _below(folder):
        if not stat.S_ISREG(mode):
            path.unlink()
            removed.append(f"{path.relative_to(folder)} ({_KINDS.get(stat.S_IFMT(mode), 'no file')})")
    return sorted(removed)


def _below(folder: Path) -> Iterator[tuple[Path, int]]:
    """All but folders, with the mode of each; no link is followed."""
    for root, folders, files in os.walk(folder):
        for name in (*files, *folders):
            path = Path(root) / name
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode):
                yield path, mode
