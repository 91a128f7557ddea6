"""Where a command's output goes: a file, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from twinbed.model.error import TwinbedError

STANDARD = "-"
"""Standard input or output, by its usual name."""


@contextmanager
def opened(output: Path | None) -> Iterator[IO[bytes]]:
    """The output, for bytes."""
    if output is None or str(output) == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with output.open("wb") as file:
            yield file
    except OSError as error:
        raise TwinbedError(f"{output} cannot be written: {error.strerror}") from error


def write(text: str, file: Path) -> None:
    """Writes a text under a temporary name and renames it."""
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
