"""Reads the study file of a command."""

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
"""twinbed's longest study has 6 KiB. The YAML reader needs half a minute for a tag of 1 MiB."""


def read_study(path: Path, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Return the study in a file, or the study of this name that comes with twinbed.

    Raises StudyError with every problem of the file, TwinbedError when it cannot be read."""
    if not path.exists():
        path = loading.shipped_file(str(path)) or path
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise TwinbedError(f"{path} is larger than {format_size(MOST_BYTES)}, too large for a study file")
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        advice = "" if path.exists() else "write one: twinbed init; or see those that come with twinbed: twinbed studies"
        raise TwinbedError(f"{path}: {reason}", advice=advice) from None
    # Only now, so that a wrong path is reported at once.
    from twinbed import registry
    from twinbed.study.loading import load

    return load(text, str(path), registry.catalogue(), overrides, profile)
