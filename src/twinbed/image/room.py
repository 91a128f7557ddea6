"""Keeps the cache's images with added software few: those that were not used for longest go, unless a process uses them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from twinbed.hosts.cache import cache_root
from twinbed.model.json import loads

MOST = 24
"""Images with added software. Each takes some 200 MB, and what was added."""
_HELD: dict[Path, int] = {}
"""Folder to a descriptor with a shared lock on it."""


def hold(folder: Path) -> None:
    """Keep an image's folder from being removed for as long as this process lives, and note that it is used."""
    if folder in _HELD or not _is_layered(folder):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    _HELD[folder] = descriptor
    with contextlib.suppress(PermissionError):  # of root's cache
        os.utime(folder / "manifest.json")


def make(say: Callable[[str], None], most: int = MOST) -> None:
    """Remove the least recently used images with added software beyond ``most``, and their bases. The builder calls it."""
    top = cache_root()
    layered = [folder for folder in (top / "images").iterdir() if _is_layered(folder)]
    for folder in sorted(layered, key=lambda layered_folder: -(layered_folder / "manifest.json").stat().st_mtime)[most:]:
        say(f"removing the image {folder.name}, the least recently used")
        _remove(folder)
    kept = {loads((folder / "manifest.json").read_bytes()).get("base") for folder in (top / "images").iterdir()}
    for folder in [base for base in (top / "bases").iterdir() if _is_layered(base) and base.name not in kept]:
        _remove(folder)


def _is_layered(folder: Path) -> bool:
    try:
        return bool(loads((folder / "manifest.json").read_bytes()).get("layer"))
    except (OSError, ValueError, AttributeError):
        return False


def _remove(folder: Path) -> None:
    """Remove a folder with the keys that lead to it, unless a process holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or on a file system without locks
        return
    else:
        top = cache_root()
        for link in (top / "current").iterdir():
            if link.is_symlink() and link.readlink() == Path("..") / folder.parent.name / folder.name:
                link.unlink()
        for archive in (top / "archives").glob(f"{folder.name}.*"):
            archive.unlink()
        # Its name goes at once, so that nobody opens a part of it; the next build removes what a kill leaves.
        gone = folder.rename(top / "tmp" / f"removed-{folder.name}")
        shutil.rmtree(gone)
    finally:
        os.close(descriptor)
