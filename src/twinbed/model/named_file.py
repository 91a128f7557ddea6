"""A file of this machine that a study names: a regular one of limited size, read once."""

from __future__ import annotations

import os
import stat


def content(file: str, most: int) -> bytes:
    """Return the file's bytes. Raises ValueError if it cannot be read, is a pipe, a device or a folder, or is too large."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{file} is not a regular file")
            if status.st_size > most:
                raise ValueError(f"{file} has {status.st_size} bytes, at most {most} are read")
            return stream.read(most)
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror}; paths start at the current folder") from error
