"""Takes from a run what is not to be kept, once its rows are safe in its own folder.

The order makes that nothing is lost whenever it is ended: the run's rows are written, synced and read back, then what was cut
of captures, then ``kept.json`` gets its name, and only then artifacts go.  From ``kept.json`` on the rows count and artifacts
are not read again, so that it makes no difference how many of them are gone; what was begun is finished the next time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from twinbed.model.caution import Kind
from twinbed.model.keep import Keep, Word
from twinbed.model.record import Record
from twinbed.model.run import Status
from twinbed.results.extract import refuse_strange, rows_of
from twinbed.results.extract.parts import tables_of
from twinbed.results.extract.rows import Readers
from twinbed.results.folder import failed_writes_are_clear, sync_directory
from twinbed.results.keep import headers
from twinbed.results.keep.kept import Damaged, File, Kept, packed, rows
from twinbed.results.keep.names import KEPT, ROWS
from twinbed.results.keep.owners import owner

_PARTIAL = ".partial"
"""What the names of files end in that are not written yet; they begin with a dot."""


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
        run = self.results / "runs" / record.id
        cut = {each.path: each.kept_as for each in _kept(run) if each.kept_as is not None}
        for artifact in record.artifacts:
            of = artifact["path"]
            path = cut.get(of) or of
            name = owner(of, record, self.readers)
            word = self.keep.word(name)
            if word is Word.EVERYTHING or not (run / path).is_file():
                continue
            if word is Word.TABLES or (of not in cut and headers.can_be_cut(run / path)):
                yield Going(path, of, name, word, _size(run / path))

    def begun(self, record: Record) -> bool:
        """Whether a run was begun to be thinned, and not ended."""
        return any(map(os.path.lexists, _leftovers(self.results / "runs" / record.id, record)))

    def thin(self, record: Record) -> Thinned:
        """Takes what is not to be kept, and finishes what was begun. Raises NotThinned where the rows cannot be made or are
        damaged, StoreError where there are links among the artifacts, DiskFull and NotWritable."""
        run = self.results / "runs" / record.id
        refuse_strange(run)
        with failed_writes_are_clear(self.results):
            begun = sum(map(_remove, [*_leftovers(run, record), *run.rglob(f".*{_PARTIAL}")]))
            going = self.going(record)
            thinned = self._thin(run, record, going) if going else Thinned()
        return replace(thinned, bytes=thinned.bytes + begun)

    def _thin(self, run: Path, record: Record, going: Sequence[Going]) -> Thinned:
        rows_before = _size(run / ROWS)
        kept = self._safe_rows(run, record)
        files = {each.path: each for each in kept.files}
        artifacts = {artifact["path"]: artifact for artifact in record.artifacts}
        for each in going:
            about = artifacts[each.of]
            file = File(each.of, about["bytes"], about.get("sha256"))
            if each.word is Word.HEADERS:
                path = f"{each.of}{headers.SUFFIX}"
                _write(run / path, partial(headers.cut, run / each.path))
                file = replace(file, kept_as=path, kept_bytes=_size(run / path))
            files[each.of] = file
        kept = replace(kept, keep=str(self.keep), files=tuple(files[path] for path in artifacts if path in files))
        content = (json.dumps(kept.to_json(), indent=1) + "\n").encode()
        _write(run / KEPT, lambda sink: sink.write(content))
        taken = sum(map(_remove, list(_leftovers(run, record))))
        cut = sum(files[each.of].kept_bytes for each in going)
        return Thinned(taken, _size(run / ROWS) - rows_before + cut)

    def _safe_rows(self, run: Path, record: Record) -> Kept:
        """``kept.json`` as it is, of a run whose rows are safe; else they are made and written, and it is a new one."""
        try:
            if os.path.lexists(run / KEPT):
                rows(run)
                return Kept.read(run)
            made = rows_of(run, record, self.readers)
            unread = [each.detail for each in made.cautions if each.kind is Kind.UNREADABLE and each not in record.cautions]
            if unread:
                raise NotThinned("; ".join(unread))
            tables = {name: table.drop_columns(["run"]) for name, table in tables_of([made]).items() if table.num_rows}
            content = packed(tables)
            _write(run / ROWS, lambda sink: sink.write(content))
            if packed(rows(run)) != content:
                raise NotThinned("its rows are not read back as they were made")
        except Damaged as error:
            raise NotThinned(str(error)) from error
        return Kept(record.id, str(self.keep), self.version, ())


def _kept(run: Path) -> Sequence[File]:
    """What is not there as it was; nothing where that cannot be read."""
    try:
        return Kept.read(run).files
    except Damaged:
        return ()


def _write(file: Path, write: Callable[[BinaryIO], object]) -> None:
    """A file at once or not at all, and on the disk when this returns."""
    partial = file.with_name(f".{file.name}{_PARTIAL}")
    with partial.open("wb") as sink:
        write(sink)
        sink.flush()
        os.fsync(sink.fileno())
    partial.replace(file)
    sync_directory(file.parent)


def _leftovers(run: Path, record: Record) -> Iterator[Path]:
    """What is not to be there, if it is: of a run with ``kept.json`` what that does not list as kept, of another what was
    written for one. A capture of the run's own that is called as one that was cut is none."""
    own = {artifact["path"] for artifact in record.artifacts}
    files = {each.path: each.kept_as for each in _kept(run)}
    if not os.path.lexists(run / KEPT):
        yield run / ROWS
    for path in own:
        if path in files:
            yield run / path
        cut = f"{path}{headers.SUFFIX}"
        if cut not in own and files.get(path) != cut:
            yield run / cut


def _remove(file: Path) -> int:
    """The bytes that it had; 0 where it is not there."""
    size = _size(file)
    file.unlink(missing_ok=True)
    return size


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
