"""What a study came to, kept beside its tables, so that `twinbed run` with nothing to do makes no page again.

It holds as long as everything that it was made of is the same: this program, the study, its runs, what was measured of its
links, and the calibrations beside them. Documents count by their content, files of runs by size and time of change.
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
from twinbed.model.json import WRONG, document, each, optional, parsed, text, value_of
from twinbed.observations.predictable import FOLDER as CALIBRATIONS
from twinbed.results.store import FROZEN
from twinbed.terminal import as_json
from twinbed.tree import Tree

FILE = "tables/conclusion.json"
"""It goes with the tables, where somebody deletes these to have all made anew."""
_DOCUMENTS = ("study.yaml", "study.json", INTERIM_FILE, FROZEN)
_FOLDERS = ("runs", "links", CALIBRATIONS)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """``verdict`` are the lines that say it in a word; ``page`` is that of the report's file, None where none was written."""

    made_of: str
    verdict: tuple[str, ...]
    page: str | None

    @classmethod
    def kept(cls, results: Path) -> Conclusion | None:
        """The one that was kept; None where there is none that can be read, as it is made again at little cost."""
        try:
            data = document(parsed(Tree(results).read(FILE)))
            page = value_of(data, "page", optional(text))
            return cls(value_of(data, "made_of", text), value_of(data, "verdict", each(text)), page)
        except (OSError, *WRONG):
            return None

    def keep(self, results: Path) -> None:
        """Raises TwinbedError where it cannot be written."""
        try:
            Tree(results).make("tables")
            Tree(results).write(FILE, as_json(asdict(self)) + "\n")
        except OSError as error:
            raise TwinbedError(
                f"{results / FILE} cannot be written: {error.strerror}", advice="make room or give write access, then try again"
            ) from error


def made_of(results: Path, package: Path | None = None) -> str:
    """Digest of all that the verdict and the page follow from. Without ``package`` it is with this program's own, which is read
    once: a process runs what it has loaded."""
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
    """What tells a page that was changed since: its size and time of change. None where it is not there."""
    try:
        about = file.stat()
    except OSError:
        return None
    return f"{about.st_size} {about.st_mtime_ns}"


def _sources(package: Path) -> Iterator[Path]:
    """This program: its modules, the compiled core, and the data that come with it."""
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = [each for each in subfolders if each != "__pycache__"]
        yield from (file for name in names if (file := Path(folder, name)).is_file())


def _files(results: Tree, folder: str) -> Iterator[str]:
    """A line a file: its name, size and time of change. Names that start with a dot are runs that never finished."""
    if results.kind(folder) is None:
        return
    for name, about in results.all_below(folder):
        if not name.startswith(".") and "/." not in name:
            yield f"{folder}/{name}\0{about.st_size}\0{about.st_mtime_ns}"
