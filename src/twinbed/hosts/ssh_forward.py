"""A Unix socket and files of another machine, over OpenSSH's own client.

The user's ``~/.ssh/config`` gives user, port, key and jump host; nothing is asked on a terminal.
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
    """Yield a local socket that leads to ``remote`` on the other machine. Raises HostError with ssh's error output."""
    with scratch.folder() as folder:
        local = folder / "socket"
        options = ("-N", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")
        client = process.Staying([*SSH, *options, "-L", f"{_path(str(local))}:{_path(remote)}", "--", destination])
        try:
            deadline = time.monotonic() + _LIMIT_S
            while not _listened_on(local):
                if client.code(0) is not None or time.monotonic() > deadline:
                    stderr = client.words()[-_LAST_WORDS:] or "no output"
                    raise HostError(f"{destination}: ssh cannot forward {remote}: {stderr}", advice=f"try ssh {destination}")
                time.sleep(_STEP_S)
            yield local
        finally:
            client.ask_to_end()
            client.end(_END_LIMIT_S)


def _path(remote: str) -> str:
    """Escape a socket's path for ``-L``, which splits at colons: ssh takes a backslash before a colon (parse_fwd_field in
    readconf.c). HOST:PORT stays."""
    return remote if not remote.startswith("/") else remote.replace("\\", "\\\\").replace(":", "\\:")


def _listened_on(path: Path) -> bool:
    """Return whether a socket accepts connections. Its file exists a moment earlier, and a trial could use up the only
    connection that the other end serves."""
    rows = (line.split() for line in Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:])
    return any(row[-1] == str(path) and int(row[3], 16) & _ACCEPTS for row in rows)


def put(destination: str, path: str, content: bytes, *, limit_s: float = 120.0) -> None:
    """Write a program into an existing folder there."""
    _run(destination, f"cat > {shlex.quote(path)} && chmod 755 {shlex.quote(path)}", content, limit_s)


def remove(destination: str, path: str, *, limit_s: float = 60.0) -> None:
    _run(destination, f"rm -f {shlex.quote(path)}", None, limit_s)


def get(destination: str, path: str, to: Path, *, limit_s: float = 120.0) -> None:
    """Copy a file from there, at most half of the free space here."""
    _run(destination, f"cat {shlex.quote(path)}", None, limit_s, to)


def run(destination: str, script: str, *, limit_s: float = 60.0) -> str:
    """Run a shell script there and return its output. Raises HostError if it fails."""
    return _run(destination, script, None, limit_s).decode(errors="replace")


def digest(destination: str, path: str, *, limit_s: float = 60.0) -> str | None:
    """Return the SHA-256 of a file there; None if it cannot be read."""
    done = process.run([*SSH, "--", destination, f"sha256sum < {shlex.quote(path)}"], limit_s=limit_s, check=False)
    return done.text.split()[0] if done.code == 0 and done.text.split() else None


def _run(destination: str, command: str, stdin: bytes | None, limit_s: float, to: Path | None = None) -> bytes:
    try:
        return process.run([*SSH, "--", destination, command], stdin=stdin, stdout=to, limit_s=limit_s).stdout
    except process.ProcessFailed as error:
        raise HostError(f"{destination}: {error}") from None
