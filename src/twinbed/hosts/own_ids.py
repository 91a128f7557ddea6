"""User and group ids of this machine's that are a host's alone, and nobody's else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
from pathlib import Path

IDS = 65_536
_MAP = Path("/proc/self/uid_map")
"""Only in the first user namespace is each id itself (user_namespaces(7))."""
_FIRST, _RANGES = 524_288, 28_656
"""Ranges that are containers' by systemd's convention (https://systemd.io/UIDS-GIDS)."""


def first_id(lab: str, host: str) -> int | None:
    """The first of the ``IDS`` ids of a host; None where this user is not root of all ids, and cannot give any. Two hosts may
    draw the same range: each is then nobody to the machine all the same."""
    if os.geteuid() != 0 or _MAP.read_text().split() != ["0", "0", "4294967295"]:
        return None
    number = int.from_bytes(hashlib.sha256(f"{lab} {host}".encode()).digest()[:4], "big")
    return _FIRST + IDS * (number % _RANGES)


def more_ids() -> tuple[str, ...]:
    """Words for the keeper of a lab without root: the ids that this user may give to others in a user namespace (subuid(5)), if
    there are any and the programs that do so."""
    user = os.geteuid()
    if user == 0 or not (shutil.which("newuidmap") and shutil.which("newgidmap")):
        return ()
    names = {str(user)}
    with contextlib.suppress(KeyError):
        names.add(pwd.getpwuid(user).pw_name)
    uids, gids = (_subordinate(file, names) for file in (Path("/etc/subuid"), Path("/etc/subgid")))
    return ("--uids", uids, "--gids", gids) if uids and gids else ()


def _subordinate(file: Path, names: set[str]) -> str | None:
    """``first:count`` of the first range that is the user's."""
    with contextlib.suppress(OSError):
        for line in file.read_text(errors="replace").splitlines():
            name, _, ids = line.partition(":")
            first, _, count = ids.partition(":")
            if name in names and first.isdigit() and count.isdigit() and int(count) > 0:
                return f"{first}:{min(int(count), IDS - 1)}"
    return None
