"""What a finished folder holds: a line for each of its files. The folder's manifest has the hash of these lines.

Looking at every byte again takes a second, so what was found right is remembered with the files' times of change (ctime), which
no program can set: it is looked at again when one of them has changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

LISTING = "contents"
_UNREAD = "-"
_TOP = frozenset({LISTING, "manifest.json"})


def listing(folder: Path) -> str:
    """A line ``MODE SHA256 PATH`` for each file below ``folder`` but the folder's own two, in the order of paths. MODE is octal
    (stat(2)); a symbolic link's hash is of its target, a folder's or a device's of nothing, and of what this user may not
    read there is none (``-``)."""
    found = _files(folder)
    with ThreadPoolExecutor() as pool:
        hashes = pool.map(lambda item: _hash(folder / item[0], item[1]), found)
        return "".join(f"{about.st_mode:06o} {sha256} {path}\n" for (path, about), sha256 in zip(found, hashes, strict=True))


def differing(folder: Path, expected: str) -> str | None:
    """The first path whose file is not as in a listing: another one, missing, or one more. None where all is as it was.

    What this user may not read is no use to this user's labs either, and is not looked at."""
    was, now = (_by_path(text) for text in (expected, listing(folder)))
    unread = {path for path, file in now.items() if file.endswith(f" {_UNREAD}")}

    def is_read(path: str) -> bool:
        return path not in unread and unread.isdisjoint(str(parent) for parent in PurePosixPath(path).parents)

    return next((path for path in sorted(was | now) if was.get(path) != now.get(path) and is_read(path)), None)


def state(folder: Path) -> str:
    """A hash of what stat(2) says of every file below ``folder``."""
    lines = [
        f"{about.st_mode} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns} {path}\n"
        for path, about in _files(folder)
    ]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _files(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return every file below a folder in the order of paths. Images have 7,000, and every run looks at them all."""
    found: list[tuple[str, os.stat_result]] = []
    folders = [(str(folder), "")]
    while folders:
        place, prefix = folders.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                path = prefix + entry.name
                if path in _TOP:
                    continue
                found.append((path, entry.stat(follow_symlinks=False)))
                if entry.is_dir(follow_symlinks=False) and os.access(entry.path, os.R_OK | os.X_OK):
                    folders.append((entry.path, f"{path}/"))
    found.sort()
    return found


def _hash(path: Path, about: os.stat_result) -> str:
    if stat.S_ISREG(about.st_mode):
        try:
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except PermissionError:
            return _UNREAD
    if stat.S_ISDIR(about.st_mode) and not os.access(path, os.R_OK | os.X_OK):
        return _UNREAD
    content = os.fsencode(path.readlink()) if stat.S_ISLNK(about.st_mode) else b""
    return hashlib.sha256(content).hexdigest()


def _by_path(text: str) -> dict[str, str]:
    lines = (line.split(" ", 2) for line in text.splitlines())
    return {path: f"{mode} {sha256}" for mode, sha256, path in lines}
