"""Reading a study file for a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.error import TwinbedError
from twinbed.model.units import format_size
from twinbed.study import loading

if TYPE_CHECKING:
    from twinbed.study.study import Study


MOST_BYTES = 2**18
"""The longest study of twinbed's own has 6 KiB. Of 1 MiB, a tag alone takes the YAML reader half a minute."""


def read_study(path: Path, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """The study in a file, or the one of this name that comes with twinbed.

    Raises StudyError with every problem of the file, TwinbedError when it cannot be read."""
    if not path.exists():
        path = loading.shipped_file(str(path)) or path
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise TwinbedError(f"{path}: more than {format_size(MOST_BYTES)}: no study file")
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        advice = "" if path.exists() else "`twinbed studies` lists those that come with twinbed"
        raise TwinbedError(f"{path}: {reason}", advice=advice) from None
    # Only now, so that a wrong path is said at once.
    from twinbed import registry
    from twinbed.study.loading import load

    return load(text, str(path), registry.catalogue(), overrides, profile)
