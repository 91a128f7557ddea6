"""Files that other programs had a hand in: names that come from a host, and folders into which its programs may write.

A host is not trusted with this machine.  A name that it gives becomes a path only if it is a plain one, and a file in a folder
that it shares is made from scratch, never written to where a link of its points.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from twinbed.hosts.error import HostError

MOST_FILES = 100_000
"""Files that a host may have among its artifacts."""
ROOM_SHARE = 0.5
"""Of the free space here, what the artifacts of one host may take."""
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=@+:-]{0,199}")


def is_plain(name: str) -> bool:
    """Whether a name is of 1 to 200 letters, digits and ``_.,=@+:-`` and begins with a letter, a digit or ``_``."""
    return _PLAIN.fullmatch(name) is not None


def plain_name(name: str, host: str) -> str:
    """Return the name itself, if it is plain: nothing that leads to another folder. Raises HostError, with the host that gave
    it."""
    if not is_plain(name):
        raise HostError(
            f"{host}: {name[:80]!r} is no name of an artifact",
            advice="it has 1 to 200 letters, digits and _.,=@+:- alone; do not trust that host until you know why it says so",
        )
    return name


def create(path: Path) -> BinaryIO:
    """Make a new file, in place of a file that has its name. No link is followed, neither of that name nor of its folder's.
    Raises HostError where a program has put a folder there, and OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise HostError(f"{path.parent.name}: {path.name}: a folder is where this artifact belongs: who made it?")
            os.unlink(path.name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(path.name, flags, 0o644, dir_fd=folder), "wb")
    finally:
        os.close(folder)
