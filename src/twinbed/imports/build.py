"""Writes what a plan says as a results folder: raw files copied or linked, run records, the study. Again, it does nothing."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinbed.imports.layout.names import shown
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.runs import Made
from twinbed.imports.scan import ScannedFile, opened
from twinbed.imports.study import KIND, About, artifact, order, passport, record, study
from twinbed.model.json import WRONG, Document, document, parsed, why
from twinbed.model.record import Record
from twinbed.results.folder import Folder, failed_writes_are_clear
from twinbed.tree import Tree

BATCH = 1000
"""Runs that are written before the disk is told to keep them."""
_BLOCK = 2**27
_INTERRUPTED = {".lock", "runs", ".study.json.partial"}
"""What an import that was ended before it wrote its study has left."""


@dataclass(frozen=True, slots=True)
class Written:
    """What came of it."""

    added: int
    there: int
    """Runs that had been imported before."""
    others: int
    """Runs of earlier imports that this one does not have."""
    conflicts: tuple[str, ...]
    """Runs that are there with other files; they stay as they are."""


def before(results: Path) -> tuple[Document, list[Record]]:
    """The study and the runs that a results folder has already; nothing where there is none.

    Raises ImportRefused where it holds what no import made, or what cannot be read.
    """
    if not results.is_dir():
        return {}, []
    tree = Tree(results)
    there = tree.entries()
    if "study.json" not in there and not there.keys() <= _INTERRUPTED:
        raise ImportRefused(f"{results} is not empty, and no results", advice="name a new folder with -o")
    try:
        data = document(parsed(tree.read("study.json"))) if "study.json" in there else {}
        names = [f"runs/{name}/run.json" for name in tree.entries("runs") if not name.startswith(".")]
        records = [Record.from_json(document(parsed(tree.read(name)))) for name in names if tree.kind(name) is not None]
        ours = (not data or "import" in data) and all(each.settings["testbed"]["kind"] == KIND for each in records)
    except (OSError, *WRONG) as error:
        raise ImportRefused(f"{results} cannot be read: {why(error)}", advice="name a new folder with -o") from error
    if not ours:
        raise ImportRefused(f"{results} holds a study that was run here", advice="name another folder with -o")
    return data, records


def build(
    folder: Path,
    results: Path,
    runs: Sequence[Made],
    about: About,
    files: Document,
    *,
    link: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Adds the runs that are not there yet. ``files`` is what ``study.json`` keeps of the import.

    Raises ImportRefused where factors are not those of the runs that are there, or a file changed while it was read.
    """
    target = Folder(results)
    before(results)
    with target.locked():
        known, there = before(results)
        have = {each.id: each for each in there}
        fresh = [run for run in runs if run.id not in have]
        _same_factors([*runs], there)
        places = order(fresh, there)
        made: list[Record] = []
        for start in range(0, len(fresh), BATCH):
            made += _batch(folder, target, fresh[start : start + BATCH], about, places, link)
            on_progress(len(made), len(fresh))
        text = json.dumps(study(about, [*there, *made], known, files), indent=1) + "\n"
        if fresh or target.tree.kind("study.json") is None:
            target.write("study.json", text)
    again = [run for run in runs if run.id in have]
    others = len(there) - len({run.id for run in again})
    return Written(
        len(made), len(again), others, tuple(_changed(run, have[run.id]) for run in again if _differs(run, have[run.id]))
    )


def _same_factors(runs: Sequence[Made], there: Sequence[Record]) -> None:
    """Cells without the same factors can never be compared."""
    sets = {frozenset(run.levels) for run in runs} | {frozenset(each.levels) - {"testbed"} for each in there}
    if len(sets) > 1:
        one, other = sorted(sorted(names) for names in sets)[:2]
        lacking = sorted(set(one) ^ set(other))
        raise ImportRefused(
            f"not all runs have the same factors: some lack {', '.join(lacking)}",
            advice="runs are compared in cells, so each needs a level of every factor; in a YAML manifest 'levels' gives one",
        )


def _differs(run: Made, there: Record) -> bool:
    hashes = {file.sha256 for each in run.candidates() for file in (each.scanned, *each.scanned.then) if file.sha256}
    return hashes != {str(each.get("sha256")) for each in there.artifacts}


def _changed(run: Made, there: Record) -> str:
    names = ", ".join(shown(each.scanned.path) for each in run.candidates())
    return f"{names}: run {there.id} was imported from other files or contents and stays as it was"


def _batch(
    folder: Path,
    target: Folder,
    runs: Sequence[Made],
    about: About,
    places: Mapping[str, tuple[int, int]],
    link: bool,
) -> list[Record]:
    """Some runs, kept by the disk before any of them has its name."""
    unfinished: list[Path] = []
    made: list[Record] = []
    try:
        with failed_writes_are_clear(target.path):
            for run in runs:
                unfinished.append(target.begin(run.id))
                made.append(_run(folder, unfinished[-1], run, about, places[run.id], link))
            os.sync()
            for below, record_of in zip(unfinished, made, strict=True):
                target.put(below, record_of.id)
    except BaseException:
        for below in unfinished:
            target.discard(below)
        raise
    return made


def _run(folder: Path, below: Path, run: Made, about: About, place: tuple[int, int], link: bool) -> Record:
    put: dict[str, str] = {}
    for each in run.candidates():
        for file in (each.scanned, *each.scanned.then):
            if file.sha256 and file.path not in put:
                put[file.path] = artifact(each.file_key.host, file.path, put.values())
                _place(folder, file, below / put[file.path], link)
    made = record(run, about, put, *place)
    for name, content in (("applied.json", []), ("passport.json", passport(run, about)), ("run.json", made.to_json())):
        Tree(below).write(name, json.dumps(content, indent=1, sort_keys=True) + "\n")
    return made


def _place(folder: Path, scanned: ScannedFile, where: Path, link: bool) -> None:
    """The file as it was looked at: a copy, which file systems that can share blocks make without copying, or a hard link."""
    where.parent.mkdir(exist_ok=True)
    source = os.path.join(os.path.realpath(folder), scanned.path)  # noqa: PTH118 -- its name may be no text
    try:
        if link and os.path.isfile(source):  # noqa: PTH113 -- a fence of a Markdown file is none
            os.link(os.path.realpath(source), where)
            _unchanged(scanned, where.stat())
            return
        with opened(source) as (descriptor, about):
            _unchanged(scanned, about)
            with _created(where) as copy:
                _copy(descriptor, copy)
                copied = os.fstat(copy).st_size
            _unchanged(scanned, os.fstat(descriptor))
            if copied != scanned.bytes:
                raise OSError(errno.EIO, f"{copied} of {scanned.bytes} bytes were copied")
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        advice = "leave --link out, so that it is copied" if link else "import again when nothing writes there"
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


def _unchanged(scanned: ScannedFile, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode) or (about.st_size, about.st_mtime_ns) != (scanned.bytes, scanned.mtime_ns):
        raise ImportRefused(
            f"{shown(scanned.path)} changed while it was imported",
            exit_code=1,
            advice="import again when nothing writes there; complete runs are kept",
        )
