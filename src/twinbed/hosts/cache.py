"""The cache of this machine: images, their archives, and what emulators were seen to do, each made once.

Root has a cache of its own, where every user finds root's images. A cache that others than root and the user can change is
refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from pathlib import Path

from twinbed.hosts import owned
from twinbed.hosts.error import HostError
from twinbed.model.image import NOTHING, Added
from twinbed.model.json import Document, loads

OF_ROOT = Path("/var/lib/twinbed/cache")
"""Root's cache, whose images all users read. Leases of this host keep their files next to it (``session.FOLDER``)."""


def cache_root() -> Path:
    """Return the cache, which need not exist: ``$TWINBED_CACHE``, root's own, ``$XDG_CACHE_HOME/twinbed`` or
    ``~/.cache/twinbed``. Raises HostError if another user can change it."""
    return owned.owned(_chosen(), _advice())


def folder(*names: str, mode: int = 0o755) -> Path:
    """Return a folder in the cache, made if it is missing. Raises HostError as ``cache_root``, or OSError."""
    top = owned.folder(cache_root(), advice=_advice())
    if top == OF_ROOT and os.geteuid() == 0 and not top.parent.stat().st_mode & 0o001:
        top.parent.chmod(0o755)  # A lease of an earlier twinbed closed it to all but root.
    for name in names:
        top = owned.folder(top / name, mode)
    return top


def places() -> list[Path]:
    """Return the caches to search for finished images: the user's, then root's."""
    caches = [cache_root()]
    if OF_ROOT not in caches and os.geteuid() != 0:
        with contextlib.suppress(HostError):  # a root cache that is closed has no image for users
            caches.append(owned.owned(OF_ROOT))
    return caches


def build_command(added: Added = NOTHING) -> str:
    """Return the shell command with which root builds the image into root's cache."""
    image = () if added.image is None else ("--image", str(added.image))
    return shlex.join(["sudo", sys.executable, "-m", "twinbed.image", *image, *added.packages])


def recall(file: Path) -> Document | None:
    """Return what was kept; None if there is nothing that can be read."""
    with contextlib.suppress(OSError, ValueError):
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as stream:
            data = loads(stream.read())
        return data if isinstance(data, dict) else None
    return None


def keep(file: Path, outcome: Document) -> None:
    """Keep an outcome in a file below the cache. Raises OSError or HostError if it cannot be written."""
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
            f"env -u TWINBED_CACHE {sys.executable} -m twinbed.image   (builds in {OF_ROOT}, where every user finds the"
            " image); or set TWINBED_CACHE to a folder that only root can change"
        )
    return "set TWINBED_CACHE to a folder that only you can change"
