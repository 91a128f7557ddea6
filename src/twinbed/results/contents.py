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
    for name, about in list(_files(tree, run.relative_to(results).as_posix())):
        if about.st_nlink > 1:
            continue
        bytes_of_file = tree.read(name)
        content = f"{FOLDER}/{hashlib.blake2b(bytes_of_file, digest_size=16).hexdigest()}"
        with contextlib.suppress(OSError):  # such as a file system without hard links, or a file with too many of them
            if not _is(tree, content, bytes_of_file, about):
                if tree.kind(content) != "folder":
                    tree.remove(content)
                tree.link(name, tree, content)
                continue
            above, _, leaf = name.rpartition("/")
            partial = f"{above}/.{leaf[:200]}{_PARTIAL}"
            tree.remove(partial)
            tree.link(content, tree, partial)
            tree.rename(partial, name)
            saved += about.st_size
    return saved


def forget(results: Path) -> None:
    """Remove contents that no run uses any more."""
    tree = Tree(results)
    for name in tree.entries(FOLDER):
        about = tree.about(f"{FOLDER}/{name}")
        if about is not None and about.st_nlink == 1 and not stat.S_ISDIR(about.st_mode):
            tree.remove(f"{FOLDER}/{name}")


def _files(tree: Tree, run: str) -> Iterator[tuple[str, os.stat_result]]:
    for name, about in tree.all_below(run):
        if stat.S_ISREG(about.st_mode) and 0 < about.st_size <= MOST_BYTES:
            yield f"{run}/{name}", about


def _is(tree: Tree, content: str, bytes_of_file: bytes, about: os.stat_result) -> bool:
    """Return whether it is that file, to the last byte and with the same access: a crash may have lost bytes."""
    there = tree.about(content)
    if there is None:
        return False
    alike = [(each.st_mode, each.st_uid, each.st_gid, each.st_size) for each in (there, about)]
    return alike[0] == alike[1] and tree.read(content) == bytes_of_file
