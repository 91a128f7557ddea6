"""Files that the core cannot read, as errors for the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twinbed.model.error import TwinbedError


@contextmanager
def refusals() -> Iterator[None]:
    """Turn an error of the core into a TwinbedError: one line and exit code 2."""
    from twinbed import _core

    try:
        yield
    except _core.ArtifactError as error:
        raise TwinbedError(str(error)) from error
    except OSError as error:
        if error.filename is None:  # of the output
            raise
        raise TwinbedError(f"{error.filename}: {error.strerror}") from error
