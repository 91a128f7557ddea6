"""Read each file once, several at a time: its hash, its kind, and its measurements by its format."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, RunKey
from twinbed.contracts.installed import refuse_lack, requirements
from twinbed.executor import BadAnswer, Executor, Here
from twinbed.imports.layout.fences import opened_fence
from twinbed.imports.layout.names import shown
from twinbed.imports.text.diagnostics import also_holds, closed, one_line_each, others_in
from twinbed.imports.text.source import HEAD_BYTES, PREFIXES, File, prefixes, why_a_bomb
from twinbed.metrics.counted import COUNT
from twinbed.model.caution import Kind
from twinbed.model.json import Document

ALONE_BYTES = 4 * 2**20
"""Up to so many bytes are read faster by this process than another is started."""
CHUNK = 16
_BLOCK = 2**20

Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """A file to be scanned. Without ``read`` only its kind is wanted."""

    path: str
    format: str = ""
    options: Document = field(default_factory=dict)
    read: bool = True
    then: tuple[str, ...] = ()
    """Files that are read below it, as one."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The units of metrics that the manifest declares: a format's own are known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a measurement that is kept until its run is made."""

    diagnostics: tuple[str, ...]
    """The first three; those that differ only in a number are one."""
    diagnostic_count: int
    cautions: tuple[str, ...]
    facts: Mapping[str, Fact]
    started_s: float | None
    harmless: tuple[str, ...] = ()
    """The first text around the measurement."""
    run_key: RunKey | None = None
    """The run that the file itself names."""


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file that was scanned. ``reason`` is why it cannot be read; then it has no pieces."""

    path: str
    sha256: str = ""
    bytes: int = 0
    mtime_ns: int = 0
    format: str = ""
    pieces: tuple[Piece, ...] = ()
    reason: str = ""
    then: tuple[ScannedFile, ...] = ()
    """Files that were read below it; they have no pieces."""
    prefix: str = ""
    """The kind of text that was taken off each of its lines (``imports.text.source.PREFIXES``); empty for none."""

    @property
    def identity(self) -> str:
        """Return the hashes of its content and of the files below it."""
        return "+".join(file.sha256 for file in (self, *self.then))

    @property
    def partly_read(self) -> bool:
        return any(piece.diagnostic_count or piece.cautions for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class _Task:
    root: str
    requests: Sequence[ScanRequest]
    formats: Mapping[str, Format]
    packages: Mapping[str, str]
    """The packages of formats that are not built in, which the reader needs too."""

    def __repr__(self) -> str:
        return ", ".join(shown(wanted.path) for wanted in self.requests)


def scan_files(
    folder: Path,
    requests: Sequence[ScanRequest],
    formats: Mapping[str, Format],
    sizes: Mapping[str, int],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    executor: Executor | None = None,
) -> list[ScannedFile]:
    """Return each of ``requests``, in order, read by ``executor`` (None: this process).

    No content of a file raises; a file that kills every reader raises WorkerLost.
    """
    root = os.path.realpath(folder)
    packages = requirements(("formats", name) for name in formats)
    tasks = [_Task(root, requests[start : start + CHUNK], formats, packages) for start in range(0, len(requests), CHUNK)]
    small = sum(sizes.get(wanted.path, 0) for wanted in requests if wanted.read) < ALONE_BYTES
    files: list[ScannedFile] = []
    scanned = (Here() if small or executor is None else executor).map(_scanned, tasks)
    for task, some in zip(tasks, scanned, strict=True):
        files += _named(task, some)
        on_progress(len(files), len(requests))
    return files


_usual: list[str] = []
"""The kind of the last file that was recognised."""


def _scanned(task: _Task) -> list[ScannedFile]:
    """Scan without paths, which the caller has: a path may be no text, and a wrong one in an answer would be a lie."""
    refuse_lack(task.packages, f"the worker on {platform.node()}")
    files = [_scan(task.root, wanted, task.formats) for wanted in task.requests]
    return [replace(file, path="", then=tuple(replace(below, path="") for below in file.then)) for file in files]


def _named(task: _Task, files: Sequence[ScannedFile]) -> Iterator[ScannedFile]:
    """Yield files with their paths. Raises BadAnswer where a worker was asked for other files."""
    if len(files) != len(task.requests) or any(
        len(file.then) not in (0, len(wanted.then)) or (file.format and file.format not in task.formats)
        for file, wanted in zip(files, task.requests, strict=True)
    ):
        raise BadAnswer(f"a worker read other files than {task!r:.200}")
    for file, wanted in zip(files, task.requests, strict=True):
        below = zip(file.then, wanted.then, strict=False)
        yield replace(file, path=wanted.path, then=tuple(replace(inner, path=path) for inner, path in below))


def _scan(root: str, wanted: ScanRequest, formats: Mapping[str, Format]) -> ScannedFile:
    path = f"{root}/{wanted.path}"
    try:
        with opened(path) as (descriptor, status), _below(root, wanted.then) as below:
            # The descriptor's own name: the opened file is read, whatever happens to the path meanwhile.
            file = File(Path(f"/proc/self/fd/{descriptor}"), shown(wanted.path), tuple(file for file, _ in below))
            then = tuple(scanned for _, scanned in below)
            size, mtime = status.st_size, status.st_mtime_ns
            if not wanted.read:
                kind, _, reason = _kind(file, wanted, formats)
                return ScannedFile(wanted.path, "", size, mtime, kind, reason=reason)
            digest = _hash(descriptor)
            kind, head_kinds, reason = _kind(file, wanted, formats)
            reason = reason or next(filter(None, (why_a_bomb(part.path) for part in (file, *file.then))), "")
            if reason:
                return ScannedFile(wanted.path, digest, size, mtime, kind, reason=reason, then=then)
            try:
                measurements = formats[kind].read(file, wanted.options)
                others = {} if wanted.format else _others(file, kind, head_kinds, formats)
                first = measurements[0]
                notes = [*also_holds(others), *_without_prefix(file)]
                measurements = [replace(first, diagnostics=[*notes, *first.diagnostics]), *measurements[1:]]
                check_units(measurements, {**{metric.name: metric.unit for metric in formats[kind].metrics}, **wanted.units})
            except FormatError as error:
                return ScannedFile(wanted.path, digest, size, mtime, kind, reason=shown(str(error)), then=then)
            pieces = tuple(_piece(measurement) for measurement in measurements)
            return ScannedFile(wanted.path, digest, size, mtime, kind, pieces, then=then, prefix=file.prefix)
    except OSError as error:
        return ScannedFile(wanted.path, reason=f"cannot be read: {error.strerror}")


@contextmanager
def _below(root: str, paths: Sequence[str]) -> Iterator[list[tuple[File, ScannedFile]]]:
    """Open the files that are read below another."""
    with ExitStack() as stack:
        below = []
        for path in paths:
            descriptor, status = stack.enter_context(opened(f"{root}/{path}"))
            scanned = ScannedFile(path, _hash(descriptor), status.st_size, status.st_mtime_ns)
            below.append((File(Path(f"/proc/self/fd/{descriptor}"), shown(path)), scanned))
        yield below


@contextmanager
def opened(path: str) -> Iterator[tuple[int, os.stat_result]]:
    """Open a regular file, or a fence in one. Raises OSError for anything else, which is neither waited for nor read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except NotADirectoryError:
        descriptor = opened_fence(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "is not a regular file", path)
        yield descriptor, status
    finally:
        os.close(descriptor)


def _hash(descriptor: int) -> str:
    digest = hashlib.sha256()
    offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        digest.update(block)
        offset += len(block)
    return digest.hexdigest()


def _kind(file: File, wanted: ScanRequest, formats: Mapping[str, Format]) -> tuple[str, Sequence[str], str]:
    """Return the format's name, and the names of others that the file holds too; or why there is none."""
    if wanted.format:
        known = wanted.format in formats
        return (wanted.format, (), "") if known else ("", (), f"there is no format {shown(wanted.format)}")
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
    kinds = [name for name, kind in formats.items() if kind.recognises(head)]
    for prefix, _ in prefixes(head) if not kinds else ():
        without = PREFIXES[prefix].sub(b"", head)
        kinds = [name for name, kind in formats.items() if kind.recognises(without)]
        if kinds:
            file.prefix = prefix
            break
    if not kinds:
        return "", (), "has no known format"
    _usual[:] = kinds[:1]
    return kinds[0], kinds[1:], ""


def _without_prefix(file: File) -> Iterator[Diagnostic]:
    """Yield a note of the text that was taken off each line."""
    if not file.prefix:
        return
    taken, file.prefix = file.prefix, ""
    begins = dict(prefixes(file.head())).get(taken)
    file.prefix = taken
    if begins is not None:
        yield Diagnostic(f"each line is read without the text before it, such as {begins!r}", harmless=True)


def _others(file: File, kind: str, head_kinds: Sequence[str], formats: Mapping[str, Format]) -> dict[str, int]:
    """Return the kinds of other programs in a text, with their first lines: in its first bytes and its last."""
    head = file.head()
    others = others_in(head, head_kinds, formats)
    if not file.in_memory or b"\0" in head:
        return others
    whole = file.text().encode()
    if head.lstrip()[:1] in (b"{", b"[") and closed(whole):
        return others
    rest = [name for name in formats if name != kind and name not in others]
    if head.lstrip()[:1] in (b"{", b"["):
        others |= others_in(head, rest, formats)
    if len(whole) > HEAD_BYTES:
        at = whole.find(b"\n", len(whole) - HEAD_BYTES) + 1
        rest = [name for name in rest if name not in others]
        others |= others_in(whole[at:], rest, formats, whole.count(b"\n", 0, at))
    return others


def check_units(measurements: Sequence[Measurement], units: Mapping[str, str]) -> None:
    """Raise FormatError for a metric that nobody declares, or in another unit; a plain number may be declared a count."""
    for value in (value for measurement in measurements for value in measurement.values):
        if value.metric not in units:
            raise FormatError(f"gives {value.metric}, which the manifest does not declare below 'metrics'")
        if value.unit != units[value.metric] and (value.unit, units[value.metric]) != ("1", COUNT):
            raise FormatError(f"gives {value.metric} in {value.unit}, but the manifest declares {units[value.metric]}")


def _piece(measurement: Measurement) -> Piece:
    """Return the kept part. A measurement without any value that could be read gets a caution, even if all lines were read."""
    cautions = [caution.detail for caution in measurement.cautions if caution.kind is Kind.UNREADABLE]
    if measurement.values and all(value.value is None for value in measurement.values) and not measurement.tables:
        cautions.append(f"{'' if measurement.run_key is None else f'{measurement.run_key}: '}none of its values could be read")
    problems = one_line_each([diagnostic for diagnostic in measurement.diagnostics if not diagnostic.harmless])
    return Piece(
        diagnostics=tuple(shown(text) for text in problems[:3]),
        diagnostic_count=len(problems),
        harmless=tuple(shown(str(diagnostic)) for diagnostic in measurement.diagnostics if diagnostic.harmless)[:1],
        cautions=tuple(shown(text) for text in cautions[:3]),
        facts=dict(measurement.facts),
        started_s=measurement.started_s,
        run_key=measurement.run_key,
    )
