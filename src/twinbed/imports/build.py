"""Write a plan as a results folder: raw files copied or linked, run records, the study. A second time, nothing changes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from twinbed.executor import Executor, Here
from twinbed.executor.local import Processes
from twinbed.imports.layout.names import shown
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.runs import Made
from twinbed.imports.scan import ScannedFile, opened
from twinbed.imports.study import KIND, ImportSettings, artifact, order, passport, record, study
from twinbed.model.json import WRONG, Document, document, parsed, why
from twinbed.model.record import Record
from twinbed.results.folder import Folder, failed_writes_are_clear
from twinbed.tree import Tree

BATCH = 1000
"""Runs that are written before they are synced to the disk."""
ALONE_RUNS = 100
"""Up to so many runs are written faster by this process than others are started."""
CHUNK = 16
_BLOCK = 2**27
_INTERRUPTED = {".lock", "runs", ".study.json.partial"}
"""Files of an import that ended before it wrote its study."""


@dataclass(frozen=True, slots=True)
class Written:
    """Numbers of runs that were written."""

    added: int
    present: int
    """Runs that had been imported before."""
    others: int
    """Runs of earlier imports that this one does not have."""
    conflicts: tuple[str, ...]
    """Runs that exist with other files; they stay as they are."""


def before(results: Path) -> tuple[Document, list[Record]]:
    """Return the study and the runs that a results folder has already; nothing where there is no folder.

    Raises ImportRefused where an import did not make it, or it cannot be read.
    """
    if not results.is_dir():
        return {}, []
    tree = Tree(results)
    entries = tree.entries()
    if "study.json" not in entries and not entries.keys() <= _INTERRUPTED:
        raise ImportRefused(f"{results} is not empty and has no results", advice="name a new folder with -o")
    try:
        data = document(parsed(tree.read("study.json"))) if "study.json" in entries else {}
        names = [f"runs/{name}/run.json" for name in tree.entries("runs") if not name.startswith(".")]
        records = [Record.from_json(document(parsed(tree.read(name)))) for name in names if tree.kind(name) is not None]
        ours = (not data or "import" in data) and all(record.settings["testbed"]["kind"] == KIND for record in records)
    except (OSError, *WRONG) as error:
        raise ImportRefused(f"{results} cannot be read: {why(error)}", advice="name a new folder with -o") from error
    if not ours:
        raise ImportRefused(f"{results} has a study that twinbed ran itself", advice="name another folder with -o")
    return data, records


def build(
    folder: Path,
    results: Path,
    runs: Sequence[Made],
    settings: ImportSettings,
    files: Document,
    *,
    link: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Add the runs that are not there yet. ``files`` is the part of ``study.json`` about the imported files.

    Raises ImportRefused where runs that exist have other factors, or a file changed while it was read.
    """
    target = Folder(results)
    before(results)
    with target.locked():
        known, present = before(results)
        have = {record.id: record for record in present}
        fresh = [run for run in runs if run.id not in have]
        _same_factors([*runs], present)
        places = order(fresh, present)
        made: list[Record] = []
        executor: Executor = Processes(len(os.sched_getaffinity(0))) if len(fresh) > ALONE_RUNS else Here()
        for start in range(0, len(fresh), BATCH):
            some = fresh[start : start + BATCH]
            made += _batch(_Task(folder, results, some, settings, {run.id: places[run.id] for run in some}, link), executor)
            on_progress(len(made), len(fresh))
        text = json.dumps(study(settings, [*present, *made], known, files), indent=1) + "\n"
        if fresh or target.tree.kind("study.json") is None:
            target.write("study.json", text)
    again = [run for run in runs if run.id in have]
    others = len(present) - len({run.id for run in again})
    return Written(
        len(made), len(again), others, tuple(_changed(run, have[run.id]) for run in again if _differs(run, have[run.id]))
    )


def _same_factors(runs: Sequence[Made], present: Sequence[Record]) -> None:
    """Check that all runs have the same factors: other cells can never be compared. Raises ImportRefused."""
    sets = {frozenset(run.levels) for run in runs} | {frozenset(record.levels) - {"testbed"} for record in present}
    if len(sets) > 1:
        some, other = sorted(sorted(names) for names in sets)[:2]
        lacking = sorted(set(some) ^ set(other))
        raise ImportRefused(
            f"not all runs have the same factors: some lack {', '.join(lacking)}",
            advice="runs are compared in cells, so each needs a level of every factor; a YAML manifest gives it below 'levels'",
        )


def _differs(run: Made, record: Record) -> bool:
    hashes = {
        file.sha256 for candidate in run.candidates() for file in (candidate.scanned, *candidate.scanned.then) if file.sha256
    }
    return hashes != {str(entry.get("sha256")) for entry in record.artifacts}


def _changed(run: Made, record: Record) -> str:
    names = ", ".join(shown(candidate.scanned.path) for candidate in run.candidates())
    return f"{names}: run {record.id} was imported from other files or contents and is kept unchanged"


@dataclass(frozen=True, slots=True)
class _Task:
    """Runs that one process writes."""

    folder: Path
    results: Path
    runs: Sequence[Made]
    settings: ImportSettings
    places: Mapping[str, tuple[int, int]]
    link: bool

    def __repr__(self) -> str:
        return ", ".join(run.id for run in self.runs)


def _batch(whole: _Task, executor: Executor) -> list[Record]:
    """Write some runs, kept by the disk before any of them has its name."""
    target = Folder(whole.results)
    tasks = [replace(whole, runs=whole.runs[at : at + CHUNK]) for at in range(0, len(whole.runs), CHUNK)]
    try:
        with failed_writes_are_clear(target.path):
            made = [written for some in executor.map(_written, tasks) for written in some]
            os.sync()
            for saved in made:
                target.put(target.unfinished(saved.id), saved.id)
    except BaseException:
        for run in whole.runs:
            target.discard(target.unfinished(run.id))
        raise
    return made


def _written(task: _Task) -> list[Record]:
    """Write runs under the names that unfinished ones have, in place of what a process that died has left of them."""
    target = Folder(task.results)
    made: list[Record] = []
    with failed_writes_are_clear(target.path):
        for run in task.runs:
            target.discard(target.unfinished(run.id))
            made.append(_run(task.folder, target.begin(run.id), run, task.settings, task.places[run.id], task.link))
    return made


def _run(folder: Path, below: Path, run: Made, settings: ImportSettings, place: tuple[int, int], link: bool) -> Record:
    put: dict[str, str] = {}
    for candidate in run.candidates():
        for file in (candidate.scanned, *candidate.scanned.then):
            if file.sha256 and file.path not in put:
                put[file.path] = artifact(candidate.file_key.host, file.path, put.values())
                _place(folder, file, below / put[file.path], link)
    made = record(run, settings, put, *place)
    with Tree(below).inside("") as tree:
        for name, content in (("applied.json", []), ("passport.json", passport(run, settings)), ("run.json", made.to_json())):
            tree.write(name, json.dumps(content, indent=1, sort_keys=True) + "\n")
    return made


def _place(folder: Path, scanned: ScannedFile, where: Path, link: bool) -> None:
    """Place a file as it was read: a copy, for which some file systems share blocks, or a hard link. Raises ImportRefused."""
    where.parent.mkdir(exist_ok=True)
    source = os.path.join(os.path.realpath(folder), scanned.path)  # noqa: PTH118 -- its name may be no text
    try:
        if link and os.path.isfile(source):  # noqa: PTH113 -- a fence of a Markdown file is none
            os.link(os.path.realpath(source), where)
            _unchanged(scanned, where.stat())
            return
        with opened(source) as (descriptor, status):
            _unchanged(scanned, status)
            with _created(where) as copy:
                _copy(descriptor, copy)
                copied = os.fstat(copy).st_size
            _unchanged(scanned, os.fstat(descriptor))
            if copied != scanned.bytes:
                raise OSError(errno.EIO, f"{copied} of {scanned.bytes} bytes were copied")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        advice = "import without --link, which copies it" if link else "import again when no program writes there"
        raise ImportRefused(f"{shown(scanned.path)}: {error.strerror}", exit_code=1, advice=advice) from error


@contextlib.contextmanager
def _created(where: Path) -> Iterator[int]:
    copy = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        yield copy
    finally:
        os.close(copy)


def _copy(source: int, copy: int) -> None:
    try:
        while os.copy_file_range(source, copy, _BLOCK):
            pass
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        os.lseek(source, 0, os.SEEK_SET)
        os.ftruncate(copy, 0)
        os.lseek(copy, 0, os.SEEK_SET)
        while block := os.read(source, _BLOCK):
            view = memoryview(block)
            while view:
                view = view[os.write(copy, view) :]


def _unchanged(scanned: ScannedFile, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or (status.st_size, status.st_mtime_ns) != (scanned.bytes, scanned.mtime_ns):
        raise ImportRefused(
            f"{shown(scanned.path)} changed while it was imported",
            exit_code=1,
            advice="import again when no program writes there; complete runs are kept",
        )
