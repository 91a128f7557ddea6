"""A file made elsewhere, opened with care: decompressed by its first bytes, and never more of it than memory should hold.

The core reads captures and traces by their path.  Where it cannot, it reads a copy: of files compressed by bzip2 or damaged, of
kinds that are read from their end, and of texts with a mark before them, such as those in UTF-16.
"""

from __future__ import annotations

import codecs
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement, Source
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

HEAD_BYTES = 65536
MOST_BYTES = 512 * 2**20
"""The most of a decompressed text: the largest results of load generators have tens of megabytes. Captures are streams."""
_PART_BYTES = 4096
"""Read at once: the most that is lost of a compressed file that ends early."""
COMPRESSED = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""A compressed file's first bytes -> what pyarrow calls its kind."""
BOMB_BYTES = 256 * 2**20
"""Decompressed bytes from which a file may be made to fill memory or time; fewer do no harm."""
BOMB_RATIO = 500
"""Captures and logs pack to a fifth, at most to a hundredth; zeros to a thousandth (gzip) and less."""
_BOMB_PART_BYTES = 2**20
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""PowerShell writes UTF-16."""
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)")
"""Colours and other sequences for a terminal: script(1) keeps them."""
_TERMINAL_BYTES = re.compile(_TERMINAL.pattern.encode())
_STREAM = re.compile(r"^\[(?:STDOUT|STDERR|stdout|stderr)\] ?", re.MULTILINE)
"""Text that runners of other programs write before each line."""
_STREAM_BYTES = re.compile(_STREAM.pattern.encode(), re.MULTILINE)
_DATE = r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|\d{10}(?:\.\d{1,9})?"
PREFIXES = {
    "label": re.compile(rb"^\[[A-Za-z][\w.:-]{0,40}\](?: |$)", re.MULTILINE),
    "host": re.compile(rb"^[A-Za-z][\w.-]{0,62}(?:: | +\| ?|:$)", re.MULTILINE),
    "date": re.compile(rf"^(?:(?:{_DATE})|\[(?:{_DATE})\])(?: |$)".encode(), re.MULTILINE),
    "log": re.compile(rb"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: |$)", re.MULTILINE),
}
"""Text that harnesses write before each line of a program: its stream or task, a host, a time (ISO 8601, of the day, since
1970, or as ts(1) writes it)."""
_ALIKE = ("label", "host")
"""Kinds that are the same before all lines."""


def prefixes(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield the kinds of ``PREFIXES`` that each line of a file's first bytes has, of two at least, with the first line's."""
    lines = [line for line in (head.rpartition(b"\n")[0] if len(head) >= HEAD_BYTES else head).split(b"\n") if line.strip()]
    for kind, pattern in PREFIXES.items():
        starts = [match[0].strip() for match in takewhile(bool, map(pattern.match, lines)) if match]
        if len(starts) == len(lines) > 1 and (kind not in _ALIKE or len(set(starts)) == 1):
            yield kind, starts[0].decode(errors="replace")


@dataclass
class File:
    """A ``twinbed.contracts.format.Source``."""

    path: Path
    name: str
    then: Sequence[File] = ()
    """Files that are read below it: content and text are of all of them, one after another."""
    prefix: str = ""
    """The kind of ``PREFIXES`` that is taken off each line of head and text; empty for none."""
    cut: bool = field(default=False, init=False)
    """True if ``content`` is of a compressed file that ends early."""

    def head(self) -> bytes:
        """Return the first bytes, of a text as ``text`` has it: in UTF-8 without a mark, line ends alike, no colours, no
        ``[STDOUT]`` before lines. Empty where the file is damaged at its start.

        Raises FormatError where it cannot be opened.
        """
        try:
            head = self._read(HEAD_BYTES)[0].removeprefix(codecs.BOM_UTF8)
            if head.startswith(UTF_16):
                head = head[: len(head) & ~1].decode("utf-16", errors="replace").encode()
            if b"\0" in head:
                return head
            head = _TERMINAL_BYTES.sub(b"", head).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            head = _STREAM_BYTES.sub(b"", head) if b"[std" in head[:_PART_BYTES].lower() else head
            return PREFIXES[self.prefix].sub(b"", head) if self.prefix else head
        except FormatError as error:
            if isinstance(error.__cause__, FileNotFoundError | PermissionError):
                raise
            return b""

    def content(self) -> bytes:
        return PREFIXES[self.prefix].sub(b"", self._all_bytes) if self.prefix else self._all_bytes

    def text(self) -> str:
        whole = self._all_bytes
        if whole.startswith(UTF_16):
            text = whole.decode("utf-16", errors="replace")
        else:
            text = whole.decode("utf-8-sig", errors="replace")
        text = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
        text = _STREAM.sub("", text) if "[std" in text[:_PART_BYTES].lower() else text
        return PREFIXES[self.prefix].sub(b"", text.encode()).decode() if self.prefix else text

    @property
    def in_memory(self) -> bool:
        """True if all of it was read as one text or content, not as a stream by its path."""
        return "_all_bytes" in self.__dict__

    @cached_property
    def _all_bytes(self) -> bytes:
        whole, self.cut = self._read(MOST_BYTES + 1)
        for file in self.then:
            whole += (b"" if whole.endswith(b"\n") else b"\n") + file.content()
            self.cut = self.cut or file.cut
            if len(whole) > MOST_BYTES:
                break
        if len(whole) > MOST_BYTES:
            raise FormatError(f"is longer than {MOST_BYTES // 2**20} MiB when decompressed")
        return whole

    def _read(self, most: int) -> tuple[bytes, bool]:
        """Return up to ``most`` bytes, and whether a compressed file ended early."""
        parts: list[bytes] = []
        size, cut = 0, False
        try:
            with self._opened() as stream:
                while size < most:
                    try:
                        part = stream.read(min(_PART_BYTES, most - size))
                    except OSError as error:
                        if not parts:
                            raise FormatError(f"cannot be decompressed: {error}") from error
                        cut = True
                        break
                    if not part:
                        break
                    parts.append(part)
                    size += len(part)
        except OSError as error:
            raise FormatError(f"cannot be read: {error.strerror or error}") from error
        return b"".join(parts), cut

    def _opened(self) -> pa.NativeFile:
        import pyarrow as pa

        kind = compression(self.path)
        file = pa.OSFile(str(self.path))
        return pa.CompressedInputStream(file, kind) if kind else file


def compression(path: Path) -> str:
    """Return the kind by a file's first bytes; empty where it is not compressed. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((kind for magic, kind in COMPRESSED.items() if start.startswith(magic)), "")


def why_a_bomb(path: Path) -> str:
    """Return the reason to refuse a file that is compressed more than any measurement; empty if it is not.

    Captures and traces are read by their path, as streams without ``MOST_BYTES``, so this is checked before any reading.
    """
    import pyarrow as pa

    kind = compression(path)
    if not kind:
        return ""
    size = 0
    with path.open("rb") as file:
        try:
            stream = pa.CompressedInputStream(pa.PythonFile(file), kind)
            while size < BOMB_BYTES and (part := stream.read(_BOMB_PART_BYTES)):
                size += len(part)
            packed = file.tell()
        except OSError:
            return ""  # damaged: what reads it says where
    if size < BOMB_BYTES or size <= BOMB_RATIO * packed:
        return ""
    times = f"{size // max(packed, 1):,} times"
    return f"is compressed {times}, more than any measurement: {size // 2**20} MiB come out of {packed / 2**20:.1f}"


def read(kind: Format, file: File, options: Document) -> Sequence[Measurement]:
    """Return the measurements of a file; the last has a diagnostic if a compressed file ends early. Raises FormatError."""
    measurements = kind.read(file, options)
    if not file.cut:
        return measurements
    diagnostic = Diagnostic("the compressed file ends early; the rest is missing")
    return [*measurements[:-1], replace(measurements[-1], diagnostics=[*measurements[-1].diagnostics, diagnostic])]


_BZIP2 = b"BZh"
_MARKS = (*UTF_16, codecs.BOM_UTF8)
_FROM_ITS_END = "expected an uncompressed file"
"""The core's error for a kind that it cannot read as a stream."""
Read = TypeVar("Read")


def read_by_path(source: Source, what: str, read: Callable[[Path], Read]) -> tuple[Read, list[Diagnostic]]:
    """Return the result of ``read`` for the file or, where that fails, for a copy that is not compressed and has no mark.

    A copy is as long as ``Source.content`` allows. Raises FormatError.
    """
    start = _start(source.path)
    if start.startswith(_MARKS):
        return _of_copy(source, source.text().encode(), what, read), []
    try:
        return read(source.path), []
    except (OSError, ValueError) as error:
        reason = str(error).removeprefix(f"{source.path}: ")
        if not start.startswith(tuple(COMPRESSED)):
            raise FormatError(f"cannot be read as {what}: {reason}") from error
    content = source.content()
    if content.startswith(_MARKS):
        return _of_copy(source, source.text().encode(), what, read), []
    whole = start.startswith(_BZIP2) or _FROM_ITS_END in reason
    return _of_copy(source, content, what, read), [] if whole else [Diagnostic(f"the compressed data are damaged: {reason}")]


def _of_copy(source: Source, content: bytes, what: str, read: Callable[[Path], Read]) -> Read:
    """Read a copy. Raises FormatError."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / source.path.name
        copy.write_bytes(content)
        try:
            return read(copy)
        except (OSError, ValueError) as error:
            raise FormatError(f"cannot be read as {what}: {str(error).removeprefix(f'{copy}: ')}") from error


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError:
        return b""
