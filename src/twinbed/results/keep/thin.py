"""Takes from a run what is not to be kept, once its rows are safe in its own folder.

The order makes that nothing is lost whenever it is ended: the run's rows are written, synced and read back, then what was cut
of captures, then ``kept.json`` gets its name, and only then artifacts go.  From ``kept.json`` on the rows count and artifacts
are not read again, so that it makes no difference how many of them are gone; what was begun is finished the next time.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from twinbed.model.caution import Kind
from twinbed.model.keep import Keep, Word
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.extract import rows_of
from twinbed.results.extract.parts import tables_of
from twinbed.results.extract.rows import Readers
from twinbed.results.folder import failed_writes_are_clear
from twinbed.results.keep import headers
from twinbed.results.keep.kept import Damaged, File, Kept, kept_and_rows, packed, rows
from twinbed.results.keep.names import KEPT, ROWS
from twinbed.results.keep.owners import owner
from twinbed.tree import Tree

_PARTIAL = ".partial"
"""What the names of files end in that are not written yet; they begin with a dot."""
_PARTIAL_NAME = re.compile(rf"\..*{re.escape(_PARTIAL)}", re.DOTALL)


class NotThinned(Exception):
    """A run whose artifacts cannot be read as they should be: they stay."""


@dataclass(frozen=True, slots=True)
class Going:
    """A file that goes, or is cut."""

    path: str
    """As it is called now."""
    of: str
    """As ``run.json`` has it."""
    owner: str
    word: Word
    bytes: int
    """Of the file as it is."""


@dataclass(frozen=True, slots=True)
class Thinned:
    """What came of it."""

    bytes: int = 0
    """That were taken."""
    kept_bytes: int = 0
    """That were written for them: rows, and captures that were cut."""


@dataclass(frozen=True, slots=True)
class Thinner:
    """Thins runs of a results folder that the caller has locked."""

    results: Path
    keep: Keep
    readers: Readers
    version: str
    """This twinbed's."""

    def going(self, record: Record) -> Sequence[Going]:
        """What would go of a run: of one that is complete, and of files that are there."""
        return tuple(self._going(record)) if record.status is Status.COMPLETE else ()

    def _going(self, record: Record) -> Iterator[Going]:
        with self._run(record) as run:
            yield from self._going_of(run, record)

    def _run(self, record: Record) -> AbstractContextManager[Tree]:
        return Tree(self.results).inside(f"runs/{record.id}")

    def _going_of(self, run: Tree, record: Record) -> Iterator[Going]:
        cut = {each.path: each.kept_as for each in _kept(run) if each.kept_as is not None}
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
        """Whether a run was begun to be thinned, and not ended."""
        with self._run(record) as run:
            return any(run.kind(name) is not None for name in _leftovers(run, record))

    def thin(self, record: Record) -> Thinned:
        """Takes what is not to be kept, and finishes what was begun. Raises NotThinned where the rows cannot be made or are
        damaged, NotPlain where there are links among the artifacts, DiskFull and NotWritable."""
        with failed_writes_are_clear(self.results), self._run(record) as run:
            partials = [name for name, _ in run.files() if _PARTIAL_NAME.fullmatch(name.rpartition("/")[2])]
            begun = sum(_remove(run, name) for name in [*_leftovers(run, record), *partials])
            going = self.going(record)
            thinned = self._thin(run, record, going) if going else Thinned()
        return replace(thinned, bytes=thinned.bytes + begun)

    def _thin(self, run: Tree, record: Record, going: Sequence[Going]) -> Thinned:
        rows_before = _size(run, ROWS)
        kept = self._safe_rows(run, record)
        files = {each.path: each for each in kept.files}
        artifacts = {artifact["path"]: artifact for artifact in record.artifacts}
        for each in going:
            about = artifacts[each.of]
            file = File(each.of, about["bytes"], about.get("sha256"))
            if each.word is Word.HEADERS:
                path = f"{each.of}{headers.SUFFIX}"
                with run.open(each.path) as capture:
                    _write(run, path, partial(headers.cut, capture))
                file = replace(file, kept_as=path, kept_bytes=_size(run, path))
            files[each.of] = file
        kept = replace(kept, keep=str(self.keep), files=tuple(files[path] for path in artifacts if path in files))
        content = (json.dumps(kept.to_json(), indent=1) + "\n").encode()
        _write(run, KEPT, lambda sink: sink.write(content))
        taken = sum(_remove(run, name) for name in list(_leftovers(run, record)))
        cut = sum(files[each.of].kept_bytes for each in going)
        return Thinned(taken, _size(run, ROWS) - rows_before + cut)

    def _safe_rows(self, run: Tree, record: Record) -> Kept:
        """``kept.json`` as it is, of a run whose rows are safe; else they are made and written, and it is a new one."""
        try:
            if run.kind(KEPT) is not None:
                kept, _ = kept_and_rows(run)
                return kept
            made = rows_of(run.path, record, self.readers)
            unread = [each.detail for each in made.cautions if each.kind is Kind.UNREADABLE and each not in record.cautions]
            if unread:
                raise NotThinned("; ".join(unread))
            tables = {name: table.drop_columns(["run"]) for name, table in tables_of([made]).items() if table.num_rows}
            content = packed(tables)
            _write(run, ROWS, lambda sink: sink.write(content))
            if packed(rows(run)) != content:
                raise NotThinned("its rows are not read back as they were made")
        except Damaged as error:
            raise NotThinned(str(error)) from error
        return Kept(record.id, str(self.keep), self.version, (), {name: table.num_rows for name, table in tables.items()})


def _kept(run: Tree) -> Sequence[File]:
    """What is not there as it was; nothing where that cannot be read."""
    try:
        return Kept.read(run).files
    except Damaged:
        return ()


def _write(run: Tree, name: str, write: Callable[[BinaryIO], object]) -> None:
    """A file at once or not at all, and on the disk when this returns."""
    above, _, leaf = name.rpartition("/")
    partial = f"{above}/.{leaf}{_PARTIAL}" if above else f".{leaf}{_PARTIAL}"
    with run.create(partial) as sink:
        write(sink)
        sink.flush()
        os.fsync(sink.fileno())
    run.rename(partial, name)
    run.sync(above)


def _leftovers(run: Tree, record: Record) -> Iterator[str]:
    """What is not to be there, if it is: of a run with ``kept.json`` what that does not list as kept, of another what was
    written for one. A capture of the run's own that is called as one that was cut is none."""
    own = {artifact["path"] for artifact in record.artifacts}
    files = {each.path: each.kept_as for each in _kept(run)}
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
    """The bytes that it had; 0 where it is not there."""
    size = _size(run, name)
    run.remove(name)
    return size


def _size(run: Tree, name: str) -> int:
    about = run.about(name)
    return about.st_size if about is not None and stat.S_ISREG(about.st_mode) else 0
