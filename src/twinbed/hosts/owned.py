"""Paths that nobody but root and this user can change, as OpenSSH requires (StrictModes in sshd_config(5)).

Each folder of the path belongs to root or to the effective user, and others may not write there. In a folder with the sticky
bit, such as /tmp, everybody may make a file, but only its owner can replace it: there the next folder's owner counts. A link is
followed if root or the user owns it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from twinbed.hosts.error import HostError

_MOST_LINKS = 40
"""The kernel's own limit (path_resolution(7))."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def owned(path: Path, advice: str = "") -> Path:
    """Return the path without links if nobody but root and the effective user can change it.

    Parts that do not exist yet are not checked. Raises HostError with the folder that others can change."""
    here, links = Path("/"), 0
    rest = list(reversed(path.absolute().parts[1:]))
    while True:
        try:
            status = here.lstat()
        except FileNotFoundError:
            return here.joinpath(*reversed(rest))
        except OSError as error:
            raise HostError(f"{here}: {error.strerror}", exit_code=3, advice=advice) from None
        _refuse(here, status, advice, sticky=bool(rest))
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise HostError(f"{path}: too many links", exit_code=3, advice=advice)
            rest += reversed((here.parent / here.readlink()).parts[1:])
            here = Path("/")
        elif not rest:
            return here
        else:
            name = rest.pop()
            here = here.parent if name == ".." else here / name


def folder(path: Path, mode: int = 0o755, advice: str = "") -> Path:
    """Make a folder with ``mode``, and the folders above it, and return it as ``owned`` does.

    Raises HostError if others can change it, or if it is a link or no folder, and OSError if it cannot be made."""
    path = owned(path.parent, advice) / path.name
    for missing in reversed([ancestor for ancestor in (path, *path.parents) if not os.path.lexists(ancestor)]):
        missing.mkdir(mode=mode if missing == path else 0o755, exist_ok=True)
    if not stat.S_ISDIR(path.lstat().st_mode):
        what = f"{path} must be a folder, not a link or a file"
        raise HostError(what, exit_code=3, advice=advice or f"rm {path}")
    return owned(path, advice)


def is_own(path: Path, kind: int) -> bool:
    """Return whether there is a file of this kind (such as ``stat.S_IFDIR``) that only root and the user may change."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_IFMT(status.st_mode) == kind and status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_WRITE


def lock_file(path: Path) -> int:
    """Open a file to lock, made if it is missing; its content stays. Raises OSError for a link in its place."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _refuse(path: Path, status: os.stat_result, advice: str, *, sticky: bool) -> None:
    if status.st_uid not in (0, os.geteuid()):
        whose = f"{path} belongs to user {status.st_uid}, who can change it, not to user {os.geteuid()}"
        raise HostError(whose, exit_code=3, advice=advice)
    if stat.S_ISLNK(status.st_mode):
        return  # A link's own mode gives nobody a right to write.
    if status.st_mode & _OTHERS_WRITE and not (sticky and status.st_mode & stat.S_ISVTX):
        raise HostError(f"other users can write to {path}", exit_code=3, advice=advice or f"chmod go-w {path}")
