"""Two folders of this user: one for files that last no longer than a command, and one for large files.

Their subfolders are locked by their makers. A lock ends with its process: the next command that makes a folder, or ``sweep``,
removes the folders of killed commands.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from twinbed.hosts.error import HostError

PREFIX = "twinbed-"
KEPT = "lab.log"
"""A file in the folder of a lab from the start. The lab's keeper outlives the command and removes the folder."""
_LOCK = "lock"
_LONGEST = 40
"""The most bytes of the path above: a socket's path has at most 107 (unix(7)), and a host's name takes some."""


def root(*, large: bool = False) -> Path:
    """Return the folder, made if it is missing. ``large``: the one for gigabytes, as the other is often memory.

    Raises HostError if it is a link or another user's, or cannot be made, as in an XDG_RUNTIME_DIR that another user left in
    the environment."""
    path = _path(large=large)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise HostError(
            f"{path} must be a folder that belongs to user {os.geteuid()}: its owner can change the programs in it",
            advice=f"rm -r {path}",
        )
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def _path(*, large: bool) -> Path:
    user = os.geteuid()
    if large:
        return Path(tempfile.gettempdir(), f"twinbed-{user}")
    bases = ["/run"] if user == 0 else [os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(), "/tmp"]
    return Path(next(base for base in bases if len(os.fsencode(base)) <= _LONGEST), f"twinbed-{user}")


@contextlib.contextmanager
def folder(*, large: bool = False) -> Iterator[Path]:
    """Yield a private folder and remove it afterwards; if the command is killed, the next one removes it."""
    for killed in _left_in(root(large=large)):
        if not (killed / KEPT).exists():
            shutil.rmtree(killed, ignore_errors=True)
    path = root(large=large) / f"{PREFIX}{secrets.token_hex(5)}"
    with contextlib.ExitStack() as stack:
        with _held_still(path.parent, fcntl.LOCK_SH):
            path.mkdir(mode=0o700)
            stack.callback(shutil.rmtree, path, ignore_errors=True)
            lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def left_behind() -> Sequence[Path]:
    """Return the folders that no living process holds."""
    return [path for parent in dict.fromkeys((root(), root(large=True))) for path in _left_in(parent)]


def _left_in(parent: Path) -> Sequence[Path]:
    with _held_still(parent, fcntl.LOCK_EX):
        return [path for path in sorted(parent.glob(f"{PREFIX}*")) if not _held(path / _LOCK)]


@contextlib.contextmanager
def _held_still(parent: Path, how: int) -> Iterator[None]:
    """Keep commands that look for dead folders away from folders that have no lock yet."""
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
