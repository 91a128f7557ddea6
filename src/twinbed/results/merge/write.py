"""Writes the results folder that a merge makes, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.results.merge.plan import Plan
from twinbed.results.merge.sources import Source


def write(made: Plan, folder: Path, on_progress: Callable[[int, int], None] | None = None) -> None:
    """The results folder. Artifacts are hard links where the file system can, else copies. One that a merge made before is made
    anew; another is refused. Raises TwinbedError."""
    _may_be_made(folder)
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        (new / "links").mkdir(parents=True)
        for number, (source, old, record) in enumerate(made.runs, start=1):
            there, here = source.store.path / "runs" / old, new / "runs" / record.id
            _linked(there, here)
            (here / "run.json").write_text(json.dumps(record.to_json(), indent=1, sort_keys=True) + "\n")
            if on_progress is not None:
                on_progress(number, len(made.runs))
        for source in {source.name: source for source, *_ in made.runs}.values():
            _links(source, new / "links")
        (new / "study.json").write_text(json.dumps(made.study, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)
    except OSError as error:
        # Of a copy that fails, the first name is the source's, which may be a folder that an archive was unpacked to.
        where = error.filename2 or error.filename or folder
        raise TwinbedError(f"{where}: {error.strerror}", advice="name another folder with -o") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _may_be_made(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    with contextlib.suppress(OSError, ValueError):
        if "sources" in json.loads((folder / "study.json").read_bytes()):
            return
    raise TwinbedError(f"{folder} is there, and no merge made it", advice="name another folder with -o")


def _linked(there: Path, here: Path) -> None:
    """A run's folder without its record. Folders are made, not copied: a source that may only be read has them read-only."""
    here.mkdir(parents=True)
    for path in sorted(there.rglob("*")):
        target = here / path.relative_to(there)
        if path.is_dir():
            target.mkdir()
        elif path != there / "run.json":
            _link(path, target)


def _link(one: Path, other: Path) -> None:
    try:
        os.link(one, other)
    except OSError:
        shutil.copy2(one, other)


def _links(source: Source, folder: Path) -> None:
    for check in source.store.link_checks:
        cell = source.identity(check.cell)
        moved = replace(check, cell=cell, run=source.identity(check.run))
        (folder / f"{cell}.json").write_text(json.dumps(moved.to_json(), indent=1) + "\n")
