"""The files of a folder. Only regular files count; anything else is listed with the reason why it is left out.

Links to folders are not followed, so that nothing comes twice or without end; links to files are, if they stay inside.
Pipes, sockets and devices are never opened.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from twinbed.imports.layout.names import natural, shown
from twinbed.imports.layout.run_key import ImportRefused

MOST_FILES = 100_000
_RESULTS = {"study.json", "runs"}
"""Members of a folder of results."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file. ``path`` is below the folder, with slashes; bytes that are no UTF-8 are surrogates in it."""

    path: str
    bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Left:
    """An entry that is left out, and the reason."""

    path: str
    reason: str


def walk(folder: Path, most: int = MOST_FILES, without: Collection[Path] = ()) -> tuple[list[Entry], list[Left]]:
    """Return the files below ``folder``, in natural order, and entries that are left out; nothing below ``without``.

    Raises ImportRefused where it is no folder, cannot be read, or holds more than ``most`` files and folders.
    """
    root = os.path.realpath(folder)
    skipped = {os.path.realpath(path) for path in without}
    entries: list[Entry] = []
    left: list[Left] = []
    folders = [""]
    seen = 0
    while folders:
        below = folders.pop()
        try:
            listing = os.scandir(f"{root}/{below}" if below else root)
        except OSError as error:
            if not below:
                raise ImportRefused(
                    f"{shown(str(folder))}: {error.strerror}", advice="give the folder of the results"
                ) from None
            left.append(Left(below, f"cannot be read: {error.strerror}"))
            continue
        with listing:
            members = list(itertools.islice(listing, most - seen + 1))
        seen += len(members)
        if seen > most:
            raise ImportRefused(
                f"{shown(str(folder))} holds more than {most:,} files and folders",
                advice="import a part of it, or raise --most-files",
            )
        if below and {member.name for member in members} >= _RESULTS:
            left.append(Left(below, "holds results of twinbed; add them with `twinbed merge`"))
            continue
        for child in members:
            path = f"{below}/{child.name}" if below else child.name
            if child.path in skipped:
                continue
            if child.name.startswith("."):
                left.append(Left(path, "is hidden"))
            elif child.is_dir(follow_symlinks=False):
                folders.append(path)
            else:
                _scan(child, path, root, entries, left)
    return sorted(entries, key=lambda entry: natural(entry.path)), sorted(left, key=lambda file: natural(file.path))


def _scan(entry: os.DirEntry[str], path: str, root: str, entries: list[Entry], left: list[Left]) -> None:
    try:
        if entry.is_symlink():
            target = os.path.realpath(entry.path)
            if os.path.commonpath([target, root]) != root:
                left.append(Left(path, "is a link that leads out of the folder"))
                return
        status = entry.stat()
    except OSError as error:
        left.append(Left(path, f"cannot be read: {error.strerror}"))
        return
    if stat.S_ISREG(status.st_mode):
        entries.append(Entry(path, status.st_size, status.st_mtime_ns))
    elif stat.S_ISDIR(status.st_mode):
        left.append(Left(path, "is a link to a folder"))
    else:
        left.append(Left(path, "is not a regular file"))
