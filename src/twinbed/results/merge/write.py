"""Writes the results folder that a merge makes, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.model.json import loads
from twinbed.results.merge.plan import Plan
from twinbed.results.merge.sources import Source
from twinbed.tree import Tree


def write(made: Plan, folder: Path, on_progress: Callable[[int, int], None] | None = None) -> None:
    """Write the results folder. Raises TwinbedError. Artifacts are hard links if the file system allows, else copies. A folder
    of an earlier merge is replaced; any other is refused."""
    _may_be_made(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    parent, making = Tree(folder.parent), f".{folder.name}.new"
    try:
        parent.remove(making)
        parent.make(making)
        new = Tree(folder.parent / making)
        new.make("links")
        for number, (source, old, record) in enumerate(made.runs, start=1):
            here = f"runs/{record.id}"
            _linked(source.store.tree, f"runs/{old}", new, here)
            new.write(f"{here}/run.json", json.dumps(record.to_json(), indent=1, sort_keys=True) + "\n")
            if on_progress is not None:
                on_progress(number, len(made.runs))
        for source in {source.name: source for source, *_ in made.runs}.values():
            _links(source, new)
        new.write("study.json", json.dumps(made.study, indent=1) + "\n")
        parent.remove(folder.name)
        parent.rename(making, folder.name)
    except OSError as error:
        # Of a copy that fails, the first name is the source's, which may be a folder that an archive was unpacked to.
        where = error.filename2 or error.filename or folder
        raise TwinbedError(f"{where}: {error.strerror}", advice="name another folder with -o") from error
    finally:
        with contextlib.suppress(OSError):
            parent.remove(making)


def _may_be_made(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    with contextlib.suppress(OSError, ValueError):
        if "sources" in loads(Tree(folder).read("study.json")):
            return
    raise TwinbedError(f"{folder} exists, and is not the result of a merge", advice="name another folder with -o")


def _linked(source: Tree, run: str, new: Tree, here: str) -> None:
    """Link a run's folder without its record. Raises NotPlain for a link or the like, which leads to other files here. Folders
    are made, not copied: a read-only source has them read-only."""
    new.make(here)
    for name, status in source.all_below(run, folders=True):
        if stat.S_ISDIR(status.st_mode):
            new.make(f"{here}/{name}")
        elif name != "run.json":
            _link(source, f"{run}/{name}", new, f"{here}/{name}")


def _link(old: Tree, name: str, new: Tree, new_name: str) -> None:
    try:
        old.link(name, new, new_name)
    except OSError:
        with old.open(name) as source, new.create(new_name) as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            status = os.fstat(source.fileno())
            os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _links(source: Source, new: Tree) -> None:
    for check in source.store.link_checks:
        cell = source.identity(check.cell)
        moved = replace(check, cell=cell, run=source.identity(check.run))
        new.write(f"links/{cell}.json", json.dumps(moved.to_json(), indent=1) + "\n")
