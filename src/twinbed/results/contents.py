"""Equal files of runs are stored once: hard links to ``contents/<hash>`` of the results folder.

Readers see plain files. Nobody writes to an artifact once its run has its name, so the number of names makes no difference.
Files that the file system cannot link, or that differ in any byte, stay copies.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from twinbed.tree import Tree

FOLDER = "contents"
MOST_BYTES = 2**20
"""Larger files are captures and samples, no two of which were ever the same: they are not read for it."""
_PARTIAL = ".linked.partial"


def share(run: Path, results: Path) -> int:
    """Link files of a run that equal earlier ones of ``results``, which the caller has locked; return the bytes saved. Raises
    OSError if a file cannot be read, NotPlain if ``contents`` is no folder."""
    tree, saved = Tree(results), 0
    tree.make(FOLDER)
    for name, status in list(_files(tree, run.relative_to(results).as_posix())):
        if status.st_nlink > 1:
            continue
        bytes_of_file = tree.read(name)
        content = f"{FOLDER}/{hashlib.blake2b(bytes_of_file, digest_size=16).hexdigest()}"
        with contextlib.suppress(OSError):  # such as a file system without hard links, or a file with too many of them
            if not _is(tree, content, bytes_of_file, status):
                if tree.kind(content) != "folder":
                    tree.remove(content)
                tree.link(name, tree, content)
                continue
            above, _, leaf = name.rpartition("/")
            partial = f"{above}/.{leaf[:200]}{_PARTIAL}"
            tree.remove(partial)
            tree.link(content, tree, partial)
            tree.rename(partial, name)
            saved += status.st_size
    return saved


def forget(results: Path) -> None:
    """Remove contents that no run uses any more."""
    tree = Tree(results)
    for name in tree.entries(FOLDER):
        status = tree.status(f"{FOLDER}/{name}")
        if status is not None and status.st_nlink == 1 and not stat.S_ISDIR(status.st_mode):
            tree.remove(f"{FOLDER}/{name}")


def _files(tree: Tree, run: str) -> Iterator[tuple[str, os.stat_result]]:
    for name, status in tree.all_below(run):
        if stat.S_ISREG(status.st_mode) and 0 < status.st_size <= MOST_BYTES:
            yield f"{run}/{name}", status


def _is(tree: Tree, content: str, bytes_of_file: bytes, status: os.stat_result) -> bool:
    """Return whether it is that file, to the last byte and with the same access: a crash may have lost bytes."""
    kept = tree.status(content)
    if kept is None:
        return False
    alike = [(same.st_mode, same.st_uid, same.st_gid, same.st_size) for same in (kept, status)]
    return alike[0] == alike[1] and tree.read(content) == bytes_of_file
