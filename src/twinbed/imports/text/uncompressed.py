"""Files that the core reads by their path, where it cannot: as they are compressed by bzip2, or damaged, or of a kind that is
read from its end; or as they are texts with a mark before them, such as those in UTF-16."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from twinbed.contracts.format import Diagnostic, FormatError, Source
from twinbed.imports.text.source import COMPRESSED, UTF_16

_BZIP2 = b"BZh"
_MARKS = (*UTF_16, codecs.BOM_UTF8)
_FROM_ITS_END = "expected an uncompressed file"
"""What the core says of a kind that it cannot read as a stream."""
Read = TypeVar("Read")


def read_by_path(source: Source, what: str, read: Callable[[Path], Read]) -> tuple[Read, list[Diagnostic]]:
    """What ``read`` makes of the file, or else of a copy that is not compressed and has no mark, as far as that can be had.

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
    """Raises FormatError."""
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
