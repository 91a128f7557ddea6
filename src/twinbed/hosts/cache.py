"""Where this machine keeps what is made once: images, archives of them, what an emulator was seen to do."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from twinbed.model.json import Document


def cache_root() -> Path:
    """``$TWINBED_CACHE``, else ``$XDG_CACHE_HOME/twinbed``, else ``~/.cache/twinbed``; it need not exist."""
    if chosen := os.environ.get("TWINBED_CACHE"):
        return Path(chosen).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "twinbed"
    return Path.home() / ".cache" / "twinbed"


def recall(file: Path) -> Document | None:
    """What was kept; None where nothing was, or nothing that can be read."""
    with contextlib.suppress(OSError, ValueError):
        data = json.loads(file.read_text())
        return data if isinstance(data, dict) else None
    return None


def keep(file: Path, outcome: Document) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(outcome))
    partial.replace(file)
