"""A Unix socket and files of another machine, over OpenSSH's own client.

How to get there (user, port, key, jump host) is the user's ``~/.ssh/config``; nothing is asked for on a terminal.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

from twinbed.hosts import process, scratch
from twinbed.hosts.error import HostError

SSH = ("ssh", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
_LIMIT_S = 20.0
_END_LIMIT_S = 5.0
_STEP_S = 0.02
_LAST_WORDS = 2000
_ACCEPTS = 0x10000
"""The flag of a listening socket in /proc/net/unix (__SO_ACCEPTCON)."""


@contextlib.contextmanager
def forwarded(destination: str, remote: str) -> Iterator[Path]:
    """A socket on this machine that is ``remote`` on the other, while the block runs. Raises HostError with what ssh said."""
    with scratch.folder() as folder:
        local = folder / "socket"
        options = ("-N", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
        client = process.Staying([*SSH, *options, "-L", f"{_path(str(local))}:{_path(remote)}", "--", destination])
        try:
            deadline = time.monotonic() + _LIMIT_S
            while not _listened_on(local):
                if client.code(0) is not None or time.monotonic() > deadline:
                    stderr = client.words()[-_LAST_WORDS:] or "nothing"
                    raise HostError(f"{destination}: ssh forwards no socket: {stderr}")
                time.sleep(_STEP_S)
            yield local
        finally:
            client.ask_to_end()
            client.end(_END_LIMIT_S)


def _path(remote: str) -> str:
    """A socket's path as a part of ``-L``, whose parts colons divide: ssh takes a backslash before one (parse_fwd_field in
    readconf.c). HOST:PORT stays."""
    return remote if not remote.startswith("/") else remote.replace("\\", "\\\\").replace(":", "\\:")


def _listened_on(path: Path) -> bool:
    """Whether a socket takes connections. The file is there a moment earlier, and trying would use up a connection: the other
    end may serve but one."""
    rows = (line.split() for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:])
    return any(row[-1] == str(path) and int(row[3], 16) & _ACCEPTS for row in rows)


def put(destination: str, path: str, content: bytes, *, limit_s: float = 120.0) -> None:
    """Write a program there, into a folder that there is."""
    _run(destination, f"cat > {shlex.quote(path)} && chmod 755 {shlex.quote(path)}", content, limit_s)


def remove(destination: str, path: str, *, limit_s: float = 60.0) -> None:
    _run(destination, f"rm -f {shlex.quote(path)}", None, limit_s)


def get(destination: str, path: str, to: Path, *, limit_s: float = 120.0) -> None:
    """Copy a file from there, at most half of the free space here."""
    _run(destination, f"cat {shlex.quote(path)}", None, limit_s, to)


def run(destination: str, script: str, *, limit_s: float = 60.0) -> str:
    """What a script of the shell there prints. Raises HostError where it fails."""
    return _run(destination, script, None, limit_s).decode(errors="replace")


def digest(destination: str, path: str, *, limit_s: float = 60.0) -> str | None:
    """SHA-256 of a file there; None where it cannot be read."""
    done = process.run([*SSH, "--", destination, f"sha256sum < {shlex.quote(path)}"], limit_s=limit_s, check=False)
    return done.text.split()[0] if done.code == 0 and done.text.split() else None


def _run(destination: str, command: str, stdin: bytes | None, limit_s: float, to: Path | None = None) -> bytes:
    try:
        return process.run([*SSH, "--", destination, command], stdin=stdin, stdout=to, limit_s=limit_s).stdout
    except process.ProcessFailed as error:
        raise HostError(f"{destination}: {error}") from None
