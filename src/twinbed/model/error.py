"""The base of every error that is the user's or the system's, not a bug: a message, an exit code, advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TwinbedError(Exception):
    """Shown as a message on standard error, without a traceback."""

    exit_code = 2

    def __init__(self, message: str, *, exit_code: int | None = None, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        if exit_code is not None:
            self.exit_code = exit_code


@contextmanager
def refusals() -> Iterator[None]:
    """What cannot be read, as one line and exit code 2."""
    from twinbed import _core

    try:
        yield
    except _core.ArtifactError as error:
        raise TwinbedError(str(error)) from error
    except OSError as error:
        raise TwinbedError(f"{error.filename}: {error.strerror}") from error
