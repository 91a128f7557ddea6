"""The kept verdict of a study, so that `twinbed run` with nothing to do does not write the page again.

It is valid while its inputs are unchanged: this program, the study, its runs, link measurements and calibrations. Documents are
compared by content, files of runs by size and time of change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import twinbed
from twinbed.model.error import TwinbedError
from twinbed.model.interim import FILE as INTERIM_FILE
from twinbed.model.json import WRONG, document, optional, parsed, text, tuple_of, value_of
from twinbed.observations.predictable import FOLDER as CALIBRATIONS
from twinbed.results.store import FROZEN
from twinbed.terminal import as_json
from twinbed.tree import Tree

FILE = "tables/conclusion.json"
"""Kept with the tables: who deletes these to rebuild them deletes it too."""
_DOCUMENTS = ("study.yaml", "study.json", INTERIM_FILE, FROZEN)
_FOLDERS = ("runs", "links", CALIBRATIONS)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Holds the short lines of the ``verdict``, and the size and time of the report's ``page``: None where none was written."""

    made_of: str
    verdict: tuple[str, ...]
    page: str | None

    @classmethod
    def kept(cls, results: Path) -> Conclusion | None:
        """Return the kept conclusion; None where none can be read, since making it again costs little."""
        try:
            data = document(parsed(Tree(results).read(FILE)))
            page = value_of(data, "page", optional(text))
            return cls(value_of(data, "made_of", text), value_of(data, "verdict", tuple_of(text)), page)
        except (OSError, *WRONG):
            return None

    def keep(self, results: Path) -> None:
        """Write the conclusion. Raises TwinbedError where that fails."""
        try:
            Tree(results).make("tables")
            Tree(results).write(FILE, as_json(asdict(self)) + "\n")
        except OSError as error:
            raise TwinbedError(
                f"{results / FILE} cannot be written: {error.strerror}",
                advice="free space or give write access, then try again",
            ) from error


def made_of(results: Path, package: Path | None = None) -> str:
    """Return the digest of everything that the verdict and the page follow from, of this program too (read once)."""
    digest = hashlib.sha256(twinbed.__version__.encode())
    digest.update(_own_program() if package is None else _program(package))
    tree = Tree(results)
    for name in _DOCUMENTS:
        digest.update(f"\0{name}\0".encode() + (tree.read(name) if tree.kind(name) else b""))
    for name in _FOLDERS:
        for line in sorted(_files(tree, name)):
            digest.update(f"\0{line}".encode(errors="surrogateescape"))
    return digest.hexdigest()


@cache
def _own_program() -> bytes:
    return _program(Path(twinbed.__file__).parent)


def _program(package: Path) -> bytes:
    digest = hashlib.sha256()
    for file in sorted(_sources(package)):
        digest.update(f"\0{file.relative_to(package)}\0".encode() + file.read_bytes())
    return digest.digest()


def page_of(file: Path) -> str | None:
    """Return the size and the time of change of a page, which show later changes; None for a missing page."""
    try:
        status = file.stat()
    except OSError:
        return None
    return f"{status.st_size} {status.st_mtime_ns}"


def _sources(package: Path) -> Iterator[Path]:
    """Yield this program's files: modules, the compiled core, and data."""
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [subfolder for subfolder in subfolders if subfolder != "__pycache__"]
        yield from (file for name in names if (file := Path(folder, name)).is_file())


def _files(results: Tree, folder: str) -> Iterator[str]:
    """Yield a line for each file: name, size and time of change. Names with a dot first are unfinished runs."""
    if results.kind(folder) is None:
        return
    for name, status in results.all_below(folder):
        if not name.startswith(".") and "/." not in name:
            yield f"{folder}/{name}\0{status.st_size}\0{status.st_mtime_ns}"
