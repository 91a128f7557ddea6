"""Reading a study file for a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed.model.error import TwinbedError

if TYPE_CHECKING:
    from twinbed.study.study import Study


def read_study(path: Path, overrides: Sequence[str] = (), profile: str | None = None) -> Study:
    """Raises StudyError with every problem of the file, TwinbedError when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TwinbedError(f"{path}: {reason}") from None
    # Only now, so that a wrong path is said at once.
    from twinbed import registry
    from twinbed.study.loading import load

    return load(text, str(path), registry.catalogue(), overrides, profile)
