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
    """The results folder. Artifacts are hard links where the file system can, else copies. One that a merge made before is made
    anew; another is refused. Raises TwinbedError."""
    _may_be_made(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside, making = Tree(folder.parent), f".{folder.name}.new"
    try:
        beside.remove(making)
        beside.make(making)
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
        beside.remove(folder.name)
        beside.rename(making, folder.name)
    except OSError as error:
        # Of a copy that fails, the first name is the source's, which may be a folder that an archive was unpacked to.
        where = error.filename2 or error.filename or folder
        raise TwinbedError(f"{where}: {error.strerror}", advice="name another folder with -o") from error
    finally:
        with contextlib.suppress(OSError):
            beside.remove(making)


def _may_be_made(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    with contextlib.suppress(OSError, ValueError):
        if "sources" in loads(Tree(folder).read("study.json")):
            return
    raise TwinbedError(f"{folder} is there, and no merge made it", advice="name another folder with -o")


def _linked(there: Tree, run: str, new: Tree, here: str) -> None:
    """A run's folder without its record. Folders are made, not copied: a source that may only be read has them read-only.
    Raises NotPlain where the run holds a link or the like, which leads to other files here."""
    new.make(here)
    for name, about in there.all_below(run, folders=True):
        if stat.S_ISDIR(about.st_mode):
            new.make(f"{here}/{name}")
        elif name != "run.json":
            _link(there, f"{run}/{name}", new, f"{here}/{name}")


def _link(there: Tree, one: str, new: Tree, other: str) -> None:
    try:
        there.link(one, new, other)
    except OSError:
        with there.open(one) as source, new.create(other) as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            about = os.fstat(source.fileno())
            os.fchmod(copy.fileno(), stat.S_IMODE(about.st_mode) & 0o777)
            os.utime(copy.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))


def _links(source: Source, new: Tree) -> None:
    for check in source.store.link_checks:
        cell = source.identity(check.cell)
        moved = replace(check, cell=cell, run=source.identity(check.run))
        new.write(f"links/{cell}.json", json.dumps(moved.to_json(), indent=1) + "\n")
