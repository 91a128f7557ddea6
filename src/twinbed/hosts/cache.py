"""Where this machine keeps what is made once: images, archives of them, what an emulator was seen to do.

Root keeps it in a folder of its own, where every user finds root's images.  Nobody but root and the user can change what is in
the cache that is used, or it is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from twinbed.hosts import owned
from twinbed.hosts.error import HostError
from twinbed.model.json import Document, loads

OF_ROOT = Path("/var/lib/twinbed/cache")
"""Root's cache, whose images all users read. Beside it is what leases of this host keep (``session.FOLDER``)."""


def cache_root() -> Path:
    """``$TWINBED_CACHE``; else root's own; else ``$XDG_CACHE_HOME/twinbed`` or ``~/.cache/twinbed``. It need not exist.

    Raises HostError where another user can change what is in it."""
    return owned.owned(_chosen(), _advice())


def folder(*names: str, mode: int = 0o755) -> Path:
    """A folder in the cache, made where it is missing. Raises HostError as ``cache_root``, or OSError."""
    top = owned.folder(cache_root(), advice=_advice())
    if top == OF_ROOT and os.geteuid() == 0 and not top.parent.stat().st_mode & 0o001:
        top.parent.chmod(0o755)  # A lease of an earlier twinbed let nobody but root in.
    for name in names:
        top = owned.folder(top / name, mode)
    return top


def places() -> list[Path]:
    """Where finished images are looked for: the cache, and then root's."""
    found = [cache_root()]
    if OF_ROOT not in found and os.geteuid() != 0:
        with contextlib.suppress(HostError):  # a machine whose root lets nobody in has no image for its users
            found.append(owned.owned(OF_ROOT))
    return found


def build_command() -> str:
    """The shell command by which a user has root build the image, into root's own cache."""
    return f"sudo {sys.executable} -m twinbed.image"


def recall(file: Path) -> Document | None:
    """What was kept; None where nothing was, or nothing that can be read."""
    with contextlib.suppress(OSError, ValueError):
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as stream:
            data = loads(stream.read())
        return data if isinstance(data, dict) else None
    return None


def keep(file: Path, outcome: Document) -> None:
    """Keep it in a file below the cache. Raises OSError or HostError where that cannot be written."""
    partial = owned.folder(file.parent) / f"{file.stem}.{os.getpid()}"
    partial.unlink(missing_ok=True)
    with partial.open("x") as stream:
        json.dump(outcome, stream)
    partial.replace(file)


def _chosen() -> Path:
    if chosen := os.environ.get("TWINBED_CACHE"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return OF_ROOT
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "twinbed"
    return Path.home() / ".cache" / "twinbed"


def _advice() -> str:
    if os.geteuid() == 0 and os.environ.get("TWINBED_CACHE"):
        return (
            f"env -u TWINBED_CACHE {sys.executable} -m twinbed.image   (root builds in {OF_ROOT}, where every user finds the"
            " image); or set TWINBED_CACHE to a folder that only root can change"
        )
    return "set TWINBED_CACHE to a folder that only you can change"
