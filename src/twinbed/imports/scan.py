"""Reads each file once, in processes side by side: its hash, its kind, and what its format says of it."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from twinbed.contracts.format import Flaw, Format, FormatError, Of, Reading
from twinbed.imports.inflated import inflated
from twinbed.imports.layout.names import shown
from twinbed.imports.layout.run_key import ImportRefused
from twinbed.imports.text.source import File
from twinbed.model.caution import Kind

ALONE_BYTES = 4 * 2**20
"""Up to so many bytes are read faster by this process than another is started."""
CHUNK = 16
_BLOCK = 2**20

Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Wish:
    """A file to be looked at. Without ``read`` only its kind is wanted."""

    path: str
    format: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    read: bool = True
    then: tuple[str, ...] = ()
    """Files that are read below it, as one."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of metrics that the manifest declares: a format's own are known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What is kept of one measurement in a file until its run is made."""

    flaws: tuple[str, ...]
    """The first, and in how many."""
    flaw_count: int
    cautions: tuple[str, ...]
    facts: Mapping[str, Fact]
    started_s: float | None
    beside: tuple[str, ...] = ()
    """The first text that is none of the measurement's."""
    of: Of | None = None
    """What the file itself says that it is of."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a file is. ``reason`` says why it cannot be read; then it has no pieces."""

    path: str
    sha256: str = ""
    bytes: int = 0
    mtime_ns: int = 0
    format: str = ""
    pieces: tuple[Piece, ...] = ()
    reason: str = ""
    then: tuple[Looked, ...] = ()
    """Files that were read below it; of them there is what they are, and no pieces."""

    @property
    def identity(self) -> str:
        """By the content of all of it."""
        return "+".join(each.sha256 for each in (self, *self.then))

    @property
    def flawed(self) -> bool:
        return any(piece.flaw_count or piece.cautions for piece in self.pieces)


def look_at(
    folder: Path,
    wishes: Sequence[Wish],
    formats: Mapping[str, Format],
    sizes: Mapping[str, int],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Looked]:
    """Each of ``wishes``, in their order. What a file is never raises; a reader that is killed raises ImportRefused."""
    root = os.path.realpath(folder)
    processes = min(len(os.sched_getaffinity(0)), 8)
    found: list[Looked] = []
    if processes == 1 or sum(sizes.get(wish.path, 0) for wish in wishes if wish.read) < ALONE_BYTES:
        for wish in wishes:
            found.append(_look(root, wish, formats))
            on_progress(len(found), len(wishes))
        return found
    pool = ProcessPoolExecutor(processes, initializer=_begin, initargs=(root, formats))
    try:
        for one in pool.map(_looked, wishes, chunksize=CHUNK):
            found.append(one)
            on_progress(len(found), len(wishes))
    except BrokenProcessPool:
        near = ", ".join(shown(wish.path) for wish in wishes[len(found) : len(found) + 3])
        raise ImportRefused(
            f"a reader was ended from outside after {len(found)} of {len(wishes)} files, near {near}",
            exit_code=1,
            advice="memory may have run out: look at the kernel log, and import the largest files apart",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
    return found


_usual: list[str] = []
"""The kind of the last file that was recognised."""
_ground: list[tuple[str, Mapping[str, Format]]] = []
"""Of a reader process: the folder and the formats."""


def _begin(root: str, formats: Mapping[str, Format]) -> None:
    _ground[:] = [(root, formats)]
    # Ctrl-C goes to all processes of the terminal; this one is ended by the one that started it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _looked(wish: Wish) -> Looked:
    root, formats = _ground[0]
    return _look(root, wish, formats)


def _look(root: str, wish: Wish, formats: Mapping[str, Format]) -> Looked:
    path = f"{root}/{wish.path}"
    try:
        with opened(path) as (descriptor, about), _below(root, wish.then) as below:
            # The descriptor's own name: what is read is what was opened, whatever happens to the path meanwhile.
            file = File(Path(f"/proc/self/fd/{descriptor}"), shown(wish.path), tuple(file for file, _ in below))
            then = tuple(looked for _, looked in below)
            size, mtime = about.st_size, about.st_mtime_ns
            if not wish.read:
                kind, _, reason = _kind(file, wish, formats)
                return Looked(wish.path, "", size, mtime, kind, reason=reason)
            digest = _hash(descriptor)
            kind, others, reason = _kind(file, wish, formats)
            reason = reason or next(filter(None, (inflated(each.path) for each in (file, *file.then))), "")
            if reason:
                return Looked(wish.path, digest, size, mtime, kind, reason=reason, then=then)
            try:
                readings = formats[kind].read(file, wish.options)
                readings = [*readings[:-1], replace(readings[-1], flaws=[*readings[-1].flaws, *_unread(others)])]
                _check(readings, {**{metric.name: metric.unit for metric in formats[kind].metrics}, **wish.units})
            except FormatError as error:
                return Looked(wish.path, digest, size, mtime, kind, reason=shown(str(error)), then=then)
            return Looked(wish.path, digest, size, mtime, kind, tuple(_piece(reading) for reading in readings), then=then)
    except OSError as error:
        return Looked(wish.path, reason=f"cannot be read: {error.strerror}")


@contextmanager
def _below(root: str, paths: Sequence[str]) -> Iterator[list[tuple[File, Looked]]]:
    """Files that are read below another."""
    with ExitStack() as stack:
        found = []
        for path in paths:
            descriptor, about = stack.enter_context(opened(f"{root}/{path}"))
            looked = Looked(path, _hash(descriptor), about.st_size, about.st_mtime_ns)
            found.append((File(Path(f"/proc/self/fd/{descriptor}"), shown(path)), looked))
        yield found


@contextmanager
def opened(path: str) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file's descriptor. Raises OSError for anything else, which it neither waits for nor reads."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(0, "is no regular file", path)
        yield descriptor, about
    finally:
        os.close(descriptor)


def _hash(descriptor: int) -> str:
    digest = hashlib.sha256()
    offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _kind(file: File, wish: Wish, formats: Mapping[str, Format]) -> tuple[str, Sequence[str], str]:
    """The format's name, and those of others whose programs wrote into the same file; or why there is none."""
    if wish.format:
        known = wish.format in formats
        return (wish.format, (), "") if known else ("", (), f"there is no format {shown(wish.format)}")
    try:
        head = file.head()
    except FormatError as error:
        return "", (), shown(str(error))
    if not head:
        return "", (), "is empty" if not file.path.stat().st_size else "cannot be decompressed"
    # Files of a folder are mostly of one kind. Documents and captures are of one alone; into a text several programs may print.
    usual = _usual[0] if _usual and _usual[0] in formats else ""
    alone = head.lstrip()[:1] in (b"{", b"[") or b"\0" in head
    if alone and usual and formats[usual].recognises(head):
        return usual, (), ""
    found = [name for name, each in formats.items() if each.recognises(head)]
    if not found:
        return "", (), "is of no kind that is known"
    _usual[:] = found[:1]
    return found[0], found[1:], ""


def _unread(others: Sequence[str]) -> Iterator[Flaw]:
    if others:
        yield Flaw(f"nothing is read of what it has of {', '.join(others)}: part the file, or name a format in a manifest")


def _check(readings: Sequence[Reading], units: Mapping[str, str]) -> None:
    """Raises FormatError for a metric that nobody declares, or in another unit."""
    for value in (value for reading in readings for value in reading.values):
        if value.metric not in units:
            raise FormatError(f"gives {value.metric}, which no 'metrics' of the manifest declares")
        if value.unit != units[value.metric]:
            raise FormatError(f"gives {value.metric} in {value.unit}, where the manifest declares {units[value.metric]}")


def _piece(reading: Reading) -> Piece:
    """A measurement none of whose values could be read is flawed, even if no line was."""
    cautions = [caution.detail for caution in reading.cautions if caution.kind is Kind.UNREADABLE]
    if reading.values and all(value.value is None for value in reading.values) and not reading.tables:
        cautions.append(f"{'' if reading.of is None else f'{reading.of}: '}none of its values could be read")
    flaws = [flaw for flaw in reading.flaws if not flaw.beside]
    return Piece(
        flaws=tuple(shown(str(flaw)) for flaw in flaws[:3]),
        flaw_count=len(flaws),
        beside=tuple(shown(str(flaw)) for flaw in reading.flaws if flaw.beside)[:1],
        cautions=tuple(shown(text) for text in cautions[:3]),
        facts=dict(reading.facts),
        started_s=reading.started_s,
        of=reading.of,
    )
