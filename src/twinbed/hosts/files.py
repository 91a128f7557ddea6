"""Names that come from a host, and files in folders that its programs may write.

A host is not trusted with this machine. Only a plain name from a host becomes a path. A file in a shared folder is made from
scratch: no link of the host's is followed.
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
"""The share of this machine's free space that the artifacts of one host may take."""
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=@+:-]{0,199}")


def is_plain(name: str) -> bool:
    """Return whether a name has 1 to 200 letters, digits and ``_.,=@+:-`` and begins with a letter, a digit or ``_``."""
    return _PLAIN.fullmatch(name) is not None


def plain_name(name: str, host: str) -> str:
    """Return a plain name, which cannot lead to another folder. Raises HostError for any other, with the host."""
    if not is_plain(name):
        raise HostError(
            f"{host}: {name[:80]!r} is no name of an artifact: names have 1 to 200 letters, digits and _.,=@+:-",
            advice="do not trust that host until you know why it gives this name",
        )
    return name


def create(path: Path) -> BinaryIO:
    """Make a new file in place of a file with this name. No link is followed, neither the file nor its folder.

    Raises HostError if a program has put a folder there, and OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise HostError(f"{path.parent.name}: {path.name}: a program made a folder in place of this artifact")
            os.unlink(path.name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(path.name, flags, 0o644, dir_fd=folder), "wb")
    finally:
        os.close(folder)
