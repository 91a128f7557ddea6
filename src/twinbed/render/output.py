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
from twinbed.terminal import say_text, visible
from twinbed.tree import Tree

_LOG = logging.getLogger(__name__)

STANDARD = "-"
"""Standard input or output, by its usual name."""


@contextmanager
def opened(output: Path | None) -> Iterator[IO[bytes]]:
    """Yield the output, for bytes."""
    if _is_standard(output):
        yield sys.stdout.buffer
        say_text("")  # what is still to be written goes out
        return
    assert output is not None
    with _named(output):
        with output.open("wb") as file:
            yield file
        _LOG.info("wrote %s", output)


def put(text: str, output: Path | None) -> None:
    """Write a text to the output, as the one writer has it. Raises TwinbedError."""
    if _is_standard(output):
        say_text(text)
    else:
        with opened(output) as file:
            file.write(visible(text).encode())


def write(text: str, file: Path, option: str = "-o FILE", *, below: Path | None = None) -> None:
    """Write a text under a temporary name and rename it, as the one writer has it. ``option`` names another file; ``below`` is
    the folder of results that the file lies in, if it does. Raises TwinbedError.

    A device, such as /dev/null, or a pipe stays and gets the text; a link is replaced, unless it is one of /dev's own, such as
    /dev/stdout. Below results no link is followed.
    """
    _LOG.info("write %s", file)
    with _named(file, option):
        if below is None and _takes_text(file):
            file.write_text(visible(text), encoding="utf-8")
            return
        tree = Tree(below or file.parent)
        name = file.relative_to(below) if below else Path(file.name)
        if name.parent.name:
            tree.make(str(name.parent))
        tree.write(str(name), visible(text))


def _is_standard(output: Path | None) -> bool:
    return output is None or str(output) == STANDARD


@contextmanager
def _named(file: Path, option: str = "-o FILE") -> Iterator[None]:
    """Put the file's name into an error of the system: a full disk's error has none. Raises TwinbedError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TwinbedError(
            f"{file} cannot be written: {error.strerror or error}", advice=f"choose another with {option}"
        ) from error


def _takes_text(file: Path) -> bool:
    try:
        status = file.stat() if file.absolute().parent == Path("/dev") else file.lstat()
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode)
