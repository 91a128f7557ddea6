"""Removes the artifacts of a run that are not kept, once its rows are safe in its own folder.

The order loses nothing whenever it is ended: the run's rows are written, synced and read back, then the cut captures, then
``kept.json`` gets its name, and only then artifacts are removed.  From ``kept.json`` on the rows count and artifacts are not
read again, so their number makes no difference. An interrupted removal is finished the next time.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import BinaryIO

from twinbed.contracts.plugins import AnyWorkload
from twinbed.model.caution import Kind
from twinbed.model.json import text
from twinbed.model.keep import REST, Keep, Word
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.extract import rows_of
from twinbed.results.extract.parts import tables_of
from twinbed.results.extract.rows import Measuring, Readers
from twinbed.results.folder import failed_writes_are_clear
from twinbed.results.keep import headers
from twinbed.results.keep.kept import Damaged, File, Kept, kept_and_rows, packed, rows
from twinbed.results.keep.names import KEPT, ROWS
from twinbed.tree import Tree

_PARTIAL = ".partial"
"""The end of the names of unfinished files; they begin with a dot."""
_PARTIAL_NAME = re.compile(rf"\..*{re.escape(_PARTIAL)}", re.DOTALL)


class NotThinned(Exception):
    """A run whose artifacts cannot be read properly: they stay."""


@dataclass(frozen=True, slots=True)
class Going:
    """A file to remove or cut."""

    path: str
    """Its present name."""
    of: str
    """Its name in ``run.json``."""
    owner: str
    word: Word
    bytes: int
    """The present size of the file."""


@dataclass(frozen=True, slots=True)
class Thinned:
    """The result of thinning."""

    bytes: int = 0
    """Bytes removed."""
    kept_bytes: int = 0
    """Bytes written for them: rows, and cut captures."""


@dataclass(frozen=True, slots=True)
class Thinner:
    """A thinner of runs of a results folder that the caller has locked."""

    results: Path
    keep: Keep
    readers: Readers
    version: str
    """The version of this twinbed."""

    def going(self, record: Record) -> Sequence[Going]:
        """Return the files of a complete run that would be removed or cut."""
        return tuple(self._going(record)) if record.status is Status.COMPLETE else ()

    def _going(self, record: Record) -> Iterator[Going]:
        with self._run(record) as run:
            yield from self._going_of(run, record)

    def _run(self, record: Record) -> AbstractContextManager[Tree]:
        return Tree(self.results).inside(f"runs/{record.id}")

    def _going_of(self, run: Tree, record: Record) -> Iterator[Going]:
        cut = {file.path: file.kept_as for file in _kept(run) if file.kept_as is not None}
        for artifact in record.artifacts:
            of = artifact["path"]
            path = cut.get(of) or of
            name = owner(of, record, self.readers)
            word = self.keep.word(name)
            if word is Word.EVERYTHING or run.kind(path) != "file":
                continue
            if word is Word.TABLES or (of not in cut and _can_be_cut(run, path)):
                yield Going(path, of, name, word, _size(run, path))

    def begun(self, record: Record) -> bool:
        """Return whether thinning of a run was begun, and not ended."""
        with self._run(record) as run:
            return any(run.kind(name) is not None for name in _leftovers(run, record))

    def thin(self, record: Record) -> Thinned:
        """Remove what is not kept, and finish what was begun. Raises NotThinned if the rows cannot be made or are damaged,
        NotPlain for links among the artifacts, DiskFull and NotWritable."""
        with failed_writes_are_clear(self.results), self._run(record) as run:
            partials = [name for name, _ in run.files() if _PARTIAL_NAME.fullmatch(name.rpartition("/")[2])]
            begun = sum(_remove(run, name) for name in [*_leftovers(run, record), *partials])
            going = self.going(record)
            thinned = self._thin(run, record, going) if going else Thinned()
        return replace(thinned, bytes=thinned.bytes + begun)

    def _thin(self, run: Tree, record: Record, going: Sequence[Going]) -> Thinned:
        rows_before = _size(run, ROWS)
        kept = self._safe_rows(run, record)
        files = {file.path: file for file in kept.files}
        artifacts = {artifact["path"]: artifact for artifact in record.artifacts}
        for removed in going:
            recorded = artifacts[removed.of]
            file = File(removed.of, recorded["bytes"], recorded.get("sha256"))
            if removed.word is Word.HEADERS:
                path = f"{removed.of}{headers.SUFFIX}"
                with run.open(removed.path) as capture:
                    _write(run, path, partial(headers.cut, capture))
                file = replace(file, kept_as=path, kept_bytes=_size(run, path))
            files[removed.of] = file
        kept = replace(kept, keep=str(self.keep), files=tuple(files[path] for path in artifacts if path in files))
        content = (json.dumps(kept.to_json(), indent=1) + "\n").encode()
        _write(run, KEPT, lambda sink: sink.write(content))
        taken = sum(_remove(run, name) for name in list(_leftovers(run, record)))
        cut = sum(files[removed.of].kept_bytes for removed in going)
        return Thinned(taken, _size(run, ROWS) - rows_before + cut)

    def _safe_rows(self, run: Tree, record: Record) -> Kept:
        """Return the ``kept.json`` of a run whose rows are safe; otherwise make and write them, and return a new one."""
        try:
            if run.kind(KEPT) is not None:
                kept, _ = kept_and_rows(run)
                return kept
            made = rows_of(run.path, record, self.readers)
            unread = [
                caution.detail
                for caution in made.cautions
                if caution.kind is Kind.UNREADABLE and caution not in record.cautions
            ]
            if unread:
                raise NotThinned("; ".join(unread))
            tables = {name: table.drop_columns(["run"]) for name, table in tables_of([made]).items() if table.num_rows}
            content = packed(tables)
            _write(run, ROWS, lambda sink: sink.write(content))
            if packed(rows(run)) != content:
                raise NotThinned("its rows differ when read back")
        except Damaged as error:
            raise NotThinned(str(error)) from error
        return Kept(record.id, str(self.keep), self.version, (), {name: table.num_rows for name, table in tables.items()})


def _kept(run: Tree) -> Sequence[File]:
    """Return the files that are no longer as collected; nothing if these cannot be read."""
    try:
        return Kept.read(run).files
    except Damaged:
        return ()


def _write(run: Tree, name: str, write: Callable[[BinaryIO], object]) -> None:
    """Write a file at once or not at all, synced to the disk."""
    above, _, leaf = name.rpartition("/")
    partial = f"{above}/.{leaf}{_PARTIAL}" if above else f".{leaf}{_PARTIAL}"
    with run.create(partial) as sink:
        write(sink)
        sink.flush()
        os.fsync(sink.fileno())
    run.rename(partial, name)
    run.sync(above)


def _leftovers(run: Tree, record: Record) -> Iterator[str]:
    """Yield files that should not be there. For a run with ``kept.json`` these are files that it does not list as kept; for
    another run, files that were written for one. A capture of the run's own with the name of a cut one does not count."""
    own = {artifact["path"] for artifact in record.artifacts}
    files = {file.path: file.kept_as for file in _kept(run)}
    if run.kind(KEPT) is None:
        yield ROWS
    for path in own:
        if path in files:
            yield path
        cut = f"{path}{headers.SUFFIX}"
        if cut not in own and files.get(path) != cut:
            yield cut


def _can_be_cut(run: Tree, name: str) -> bool:
    with run.open(name) as capture:
        return headers.can_be_cut(capture)


def _remove(run: Tree, name: str) -> int:
    """Remove a file and return its bytes; 0 if it is missing."""
    size = _size(run, name)
    run.remove(name)
    return size


def _size(run: Tree, name: str) -> int:
    status = run.status(name)
    return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0


_OF_THE_LINK_CHECK = "link-check.*"
"""Names of artifacts of the lab's own check of links (linkcheck)."""


def plugins_of(record: Record, readers: Readers) -> Iterator[AnyWorkload | Measuring]:
    """Yield the known workload, instruments and background loads of a run."""
    kind = text(record.settings["workload"]["kind"])
    if kind in readers.workloads:
        yield readers.workloads[kind]
    for section in (record.settings["instruments"], record.settings.get("background", {})):
        kinds = (text(settings["kind"]) for settings in section.values())
        yield from (readers.accompanying[kind] for kind in kinds if kind in readers.accompanying)


def owner(path: str, record: Record, readers: Readers) -> str:
    """Return the name of the plugin that owns the artifact ``path``: the longest matching pattern decides."""
    name = path.split("/")[2] if path.count("/") > 1 else path
    if fnmatchcase(name, _OF_THE_LINK_CHECK):
        return REST
    owners = {
        pattern: plugin.name for plugin in plugins_of(record, readers) for pattern in plugin.files if fnmatchcase(name, pattern)
    }
    return owners[max(owners, key=len)] if owners else REST
