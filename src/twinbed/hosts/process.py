"""Programs on this machine, outside any lab: builders of images, and the process that holds a lab.

Units: seconds.  Everything that runs inside a lab goes through ``agent``.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from twinbed.model.error import TwinbedError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Completed:
    """A program that ran to its end."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")


class ProcessFailed(TwinbedError):
    """A program that could not be started, failed, or took too long; keeps its error output."""

    def __init__(self, argv: Sequence[str], why: str, stderr: bytes = b"", code: int | None = None) -> None:
        tail = stderr.decode(errors="replace").strip().splitlines()[-8:]
        last_lines = "".join(f"\n    {line}" for line in tail)
        super().__init__(f"{' '.join(map(str, argv))}: {why}{last_lines}")
        self.argv = tuple(argv)
        self.code = code
        self.stderr = stderr


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_s: float = 60.0,
    stdin: bytes | BinaryIO | None = None,
    stdout: Path | None = None,
    log: Path | None = None,
    check: bool = True,
) -> Completed:
    """Run a program to its end.

    ``env`` is added to the environment. ``stdin`` is the input, or a file that is read from where it stands. ``stdout`` and
    ``log`` name files for its output and error output instead of keeping them.  Raises ProcessFailed when it cannot start,
    exceeds ``limit_s``, or (with ``check``) ends with another code than 0.
    """
    started = time.monotonic()
    content = stdin if isinstance(stdin, bytes) else None
    source = subprocess.DEVNULL if stdin is None else None if isinstance(stdin, bytes) else stdin
    out = stdout.open("wb") if stdout else None
    err = log.open("wb") if log else None
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env={**os.environ, "PATH": _path(), **(env or {})},
            stdin=source,
            input=content,
            stdout=out or subprocess.PIPE,
            stderr=err or subprocess.PIPE,
            timeout=limit_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise ProcessFailed(argv, f"no such program ({error.filename})") from None
    except PermissionError as error:
        raise ProcessFailed(argv, f"may not be started: {error.strerror}") from None
    except subprocess.TimeoutExpired as error:
        raise ProcessFailed(argv, f"not done after {limit_s:g} s", error.stderr or b"") from None
    finally:
        for stream in (out, err):
            if stream:
                stream.close()
    completed = Completed(tuple(argv), done.returncode, done.stdout or b"", done.stderr or b"", time.monotonic() - started)
    _LOG.info("ran %s: exit code %d after %.2f s", shlex.join(map(str, argv)), completed.code, completed.seconds)
    if check and done.returncode != 0:
        output = completed.stderr or (log.read_bytes() if log else completed.stdout)
        raise ProcessFailed(argv, f"exit code {done.returncode}", output, done.returncode)
    return completed


def start(argv: Sequence[str], *, keep_open: Sequence[int] = (), log: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a program that stays; ``keep_open`` are file descriptors that it inherits."""
    _LOG.info("start %s", shlex.join(map(str, argv)))
    with (log or Path(os.devnull)).open("ab") as err:
        try:
            return subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=err, stderr=err, pass_fds=tuple(keep_open), start_new_session=True
            )
        except OSError as error:
            raise ProcessFailed(argv, f"cannot be started: {error.strerror}") from None


def attached(argv: Sequence[str], stream: socket.socket, log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a program that stays, with ``stream`` as its standard input and output."""
    try:
        return subprocess.Popen(list(argv), stdin=stream.fileno(), stdout=stream.fileno(), stderr=log, start_new_session=True)
    except OSError as error:
        raise ProcessFailed(argv, f"cannot be started: {error.strerror}") from None


def _path() -> str:
    """Where programs are looked for: with the folders of system programs, which a user's PATH (or that of `su`) may lack."""
    return f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin"
