"""Where this machine keeps what is made once: images, archives of them, what an emulator was seen to do."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """``$TWINBED_CACHE``, else ``$XDG_CACHE_HOME/twinbed``, else ``~/.cache/twinbed``; it need not exist."""
    if chosen := os.environ.get("TWINBED_CACHE"):
        return Path(chosen).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "twinbed"
    return Path.home() / ".cache" / "twinbed"
