"""The exported folder: which folder may be written, and parts that appear in it whole or not at all."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from twinbed.model.error import TwinbedError
from twinbed.model.json import loads
from twinbed.tree import Tree

MARK = "export.json"
FORMAT = 1


def opened(folder: Path, study: str, version: str) -> None:
    """Make the folder, or check that an export made it. Raises TwinbedError where something else did."""
    entries = Tree(folder).entries() if folder.is_dir() else {}
    if (entries and MARK not in entries) or (folder.exists() and not folder.is_dir()):
        raise TwinbedError(f"{folder} exists, and is not an export", advice="name another folder with -o")
    if entries:
        before = _study(folder)
        if before != study:
            raise TwinbedError(f"{folder} is the export of {before!r}, not of {study!r}", advice="name another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    Tree(folder).write(MARK, json.dumps({"format": FORMAT, "study": study, "twinbed": version}) + "\n")


def _study(folder: Path) -> str:
    try:
        return str(loads(Tree(folder).read(MARK))["study"])
    except (ValueError, LookupError, TypeError) as error:
        raise TwinbedError(f"{folder / MARK} is not of an export: {error}", advice="name another folder with -o") from error


@contextlib.contextmanager
def part(folder: Path, name: str) -> Iterator[Path]:
    """Provide a new folder that replaces ``name`` when all of it is written."""
    tree, making = Tree(folder), f".{name}.partial"
    tree.remove(making)
    tree.make(making)
    try:
        yield folder / making
        tree.remove(name)
        tree.rename(making, name)
    finally:
        tree.remove(making)
