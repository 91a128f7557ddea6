"""Files of runs that are the same are kept once: hard links to ``contents/<hash>`` of the results folder.

Whoever reads sees plain files. Nobody writes to an artifact once its run has its name, so that it makes no difference how many
names it has. What the file system cannot link, or is not the same byte for byte, stays a copy.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER = "contents"
MOST_BYTES = 2**20
"""Larger ones are captures and samples, no two of which were ever the same: they are not read for it."""
_PARTIAL = ".linked.partial"


def share(run: Path, results: Path) -> int:
    """Links what a run has in common with those before it, of ``results``, which the caller has locked; the bytes that it no
    longer takes. Raises OSError where a file cannot be read."""
    contents = results / FOLDER
    contents.mkdir(exist_ok=True)
    saved = 0
    for file, about in _files(run):
        if about.st_nlink > 1:
            continue
        content = contents / hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        with contextlib.suppress(OSError):  # such as a file system without hard links, or a file with too many of them
            if not _is(content, file, about):
                content.unlink(missing_ok=True)
                os.link(file, content)
                continue
            partial = file.with_name(f".{file.name[:200]}{_PARTIAL}")
            partial.unlink(missing_ok=True)
            os.link(content, partial)
            partial.replace(file)
            saved += about.st_size
    return saved


def forget(results: Path) -> None:
    """Removes contents that no run has any more."""
    for content in (results / FOLDER).glob("*"):
        if content.lstat().st_nlink == 1:
            content.unlink()


def _files(run: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for root, _, names in os.walk(run):
        for name in names:
            file = Path(root) / name
            about = file.lstat()
            if stat.S_ISREG(about.st_mode) and 0 < about.st_size <= MOST_BYTES:
                yield file, about


def _is(content: Path, file: Path, about: os.stat_result) -> bool:
    """Whether it is that file, to its last byte, and as open to others: what a machine lost that went down is another."""
    with contextlib.suppress(FileNotFoundError):
        there = content.lstat()
        alike = [(each.st_mode, each.st_uid, each.st_gid, each.st_size) for each in (there, about)]
        return alike[0] == alike[1] and filecmp.cmp(content, file, shallow=False)
    return False
