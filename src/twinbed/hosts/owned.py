"""Paths that nobody but root and this user can change, as OpenSSH wants them (StrictModes in sshd_config(5)).

Each folder on the way belongs to root or to the effective user, and others may not write there.  In a folder with the sticky
bit, such as /tmp, everybody may make something new, but only its owner can put another in its place: there the next folder's
owner decides.  A link on the way is followed where it is root's or the user's.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from twinbed.hosts.error import HostError

_MOST_LINKS = 40
"""As the kernel's own limit (path_resolution(7))."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def owned(path: Path, advice: str = "") -> Path:
    """Return the path without links, where nobody but root and the effective user can change what is there.

    What does not exist yet is not looked at. Raises HostError, which names the folder that others can change."""
    here, links = Path("/"), 0
    rest = list(reversed(path.absolute().parts[1:]))
    while True:
        try:
            found = here.lstat()
        except FileNotFoundError:
            return here.joinpath(*reversed(rest))
        except OSError as error:
            raise HostError(f"{here}: {error.strerror}", exit_code=3, advice=advice) from None
        _refuse(here, found, advice, sticky=bool(rest))
        if stat.S_ISLNK(found.st_mode):
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
    """Make the folder and those above it; ``mode`` is of the last. Return it as ``owned`` does, looked at once it is there.

    Raises HostError where others can change it, or it is a link or no folder, and OSError where it cannot be made."""
    path = owned(path.parent, advice) / path.name
    for missing in reversed([each for each in (path, *path.parents) if not os.path.lexists(each)]):
        missing.mkdir(mode=mode if missing == path else 0o755, exist_ok=True)
    if not stat.S_ISDIR(path.lstat().st_mode):
        what = f"{path} is no folder, or a link to one: links are not followed here"
        raise HostError(what, exit_code=3, advice=advice or f"rm {path}")
    return owned(path, advice)


def is_own(path: Path, kind: int) -> bool:
    """Whether there is a file of this kind (``stat.S_IFDIR`` and the like), no link, that only root and the user may change."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid in (0, os.geteuid()) and not found.st_mode & _OTHERS_WRITE


def lock_file(path: Path) -> int:
    """Open a file to lock, made where it is missing; a link in its place is an OSError, and no content is lost."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _refuse(path: Path, found: os.stat_result, advice: str, *, sticky: bool) -> None:
    if found.st_uid not in (0, os.geteuid()):
        whose = f"{path} is user {found.st_uid}'s, not user {os.geteuid()}'s: its owner can change what is there"
        raise HostError(whose, exit_code=3, advice=advice)
    if stat.S_ISLNK(found.st_mode):
        return  # Nobody writes through a link's own mode.
    if found.st_mode & _OTHERS_WRITE and not (sticky and found.st_mode & stat.S_ISVTX):
        raise HostError(f"{path} may be written by other users", exit_code=3, advice=advice or f"chmod go-w {path}")
