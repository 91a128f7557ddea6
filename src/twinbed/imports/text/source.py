"""A file made elsewhere, opened with care: decompressed by its first bytes, and never more of it than memory should hold."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.contracts.format import Diagnostic, Format, FormatError, Measurement
from twinbed.model.json import Document

if TYPE_CHECKING:
    import pyarrow as pa

HEAD_BYTES = 65536
MOST_BYTES = 512 * 2**20
"""The most of a decompressed text: the largest results of load generators have tens of megabytes. Captures are streams."""
_PART_BYTES = 4096
"""Read at once: what of a compressed file that ends early is lost at most."""
COMPRESSED = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""A compressed file's first bytes -> what pyarrow calls its kind."""
BOMB_BYTES = 256 * 2**20
"""Decompressed bytes by which a file that only means to fill memory or time is told; fewer do no harm."""
BOMB_RATIO = 500
"""Captures and logs pack to a fifth, at most to a hundredth; zeros to a thousandth (gzip) and less."""
_BOMB_PART_BYTES = 2**20
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What PowerShell writes."""
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)")
"""Colours, and what else a terminal acts on: script(1) keeps it."""
_TERMINAL_BYTES = re.compile(_TERMINAL.pattern.encode())
_STREAM = re.compile(r"^\[(?:STDOUT|STDERR|stdout|stderr)\] ?", re.MULTILINE)
"""What runners of other programs write before each line of theirs."""
_STREAM_BYTES = re.compile(_STREAM.pattern.encode(), re.MULTILINE)
_DATE = r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|\d{10}(?:\.\d{1,9})?"
PREFIXES = {
    "label": re.compile(rb"^\[[A-Za-z][\w.:-]{0,40}\](?: |$)", re.MULTILINE),
    "host": re.compile(rb"^[A-Za-z][\w.-]{0,62}(?:: | +\| ?|:$)", re.MULTILINE),
    "date": re.compile(rf"^(?:(?:{_DATE})|\[(?:{_DATE})\])(?: |$)".encode(), re.MULTILINE),
    "log": re.compile(rb"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: |$)", re.MULTILINE),
}
"""What harnesses write before each line of a program's: its stream or task, a host, a time (ISO 8601, of the day, since 1970,
or as ts(1) writes it)."""
_ALIKE = ("label", "host")
"""Those that are the same before all lines."""


def prefixes(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield the kinds of ``PREFIXES`` that each line of a file's first bytes has, of two at least, with the first line's."""
    lines = [line for line in (head.rpartition(b"\n")[0] if len(head) >= HEAD_BYTES else head).split(b"\n") if line.strip()]
    for kind, pattern in PREFIXES.items():
        found = [match[0].strip() for match in takewhile(bool, map(pattern.match, lines)) if match]
        if len(found) == len(lines) > 1 and (kind not in _ALIKE or len(set(found)) == 1):
            yield kind, found[0].decode(errors="replace")


@dataclass
class File:
    """A ``twinbed.contracts.format.Source``."""

    path: Path
    name: str
    then: Sequence[File] = ()
    """Files that stand below it: content and text are of all of them, one after another."""
    prefix: str = ""
    """The kind of ``PREFIXES`` that is taken off each line of head and text; empty for none."""
    cut: bool = field(default=False, init=False)
    """Whether ``content`` is of a compressed file that ends early."""

    def head(self) -> bytes:
        """As the protocol says, of a text as ``text`` has it: in UTF-8 without a mark, line ends alike, no colours. Empty where
        the file is damaged at its start; no ``[STDOUT]`` before lines. Raises FormatError where it cannot be opened."""
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
        return PREFIXES[self.prefix].sub(b"", self._whole) if self.prefix else self._whole

    def text(self) -> str:
        whole = self._whole
        if whole.startswith(UTF_16):
            text = whole.decode("utf-16", errors="replace")
        else:
            text = whole.decode("utf-8-sig", errors="replace")
        text = _TERMINAL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
        text = _STREAM.sub("", text) if "[std" in text[:_PART_BYTES].lower() else text
        return PREFIXES[self.prefix].sub(b"", text.encode()).decode() if self.prefix else text

    @property
    def in_memory(self) -> bool:
        """Whether all of it was read as one text or content, not as a stream by its path."""
        return "_whole" in self.__dict__

    @cached_property
    def _whole(self) -> bytes:
        whole, self.cut = self._read(MOST_BYTES + 1)
        for each in self.then:
            whole += (b"" if whole.endswith(b"\n") else b"\n") + each.content()
            self.cut = self.cut or each.cut
            if len(whole) > MOST_BYTES:
                break
        if len(whole) > MOST_BYTES:
            raise FormatError(f"is longer than {MOST_BYTES // 2**20} MiB when decompressed")
        return whole

    def _read(self, most: int) -> tuple[bytes, bool]:
        """Up to ``most`` bytes; of a compressed file that ends early, what there is, and that it does."""
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
    """The kind by a file's first bytes; empty where it is not compressed. Raises OSError."""
    with path.open("rb") as file:
        start = file.read(4)
    return next((kind for magic, kind in COMPRESSED.items() if start.startswith(magic)), "")


def why_a_bomb(path: Path) -> str:
    """The reason to refuse a compressed file out of which far more comes than any measurement packs; empty where there is none.

    Captures and traces are read by their path, as streams without ``MOST_BYTES``, so that this is looked at before any reading.
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
    return f"is packed {times}, as nothing measured is: {size // 2**20} MiB come out of {packed / 2**20:.1f}"


def read(each: Format, file: File, options: Document) -> Sequence[Measurement]:
    """The measurements of a file; the last says so where the file is compressed and ends early. Raises FormatError."""
    measurements = each.read(file, options)
    if not file.cut:
        return measurements
    diagnostic = Diagnostic("the compressed file ends early: what is behind was not read")
    return [*measurements[:-1], replace(measurements[-1], diagnostics=[*measurements[-1].diagnostics, diagnostic])]
