"""Where a command's output goes: a file, or standard output."""

from __future__ import annotations

import logging
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from twinbed.model.error import TwinbedError
from twinbed.tree import Tree

_LOG = logging.getLogger(__name__)

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
        _LOG.info("wrote %s", output)
    except OSError as error:
        raise TwinbedError(f"{output} cannot be written: {error.strerror}") from error


def write(text: str, file: Path) -> None:
    """Writes a text under a temporary name and renames it. A device, such as /dev/null, or a pipe stays and gets the text; a
    link is replaced, unless it is one of /dev's own, such as /dev/stdout."""
    _LOG.info("write %s", file)
    if _takes_text(file):
        file.write_text(text, encoding="utf-8")
        return
    Tree(file.parent).write(file.name, text)


def _takes_text(file: Path) -> bool:
    try:
        about = file.stat() if file.absolute().parent == Path("/dev") else file.lstat()
    except OSError:
        return False
    return stat.S_ISCHR(about.st_mode) or stat.S_ISFIFO(about.st_mode)
