"""Programs on this machine, outside any lab: builders of images, ssh, and the process that holds a lab.

Units: seconds, bytes. Everything that runs inside a lab goes through ``agent``. A program's output may come from another
machine: it is taken up to a limit, and the time limit holds while the program writes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, TypeVar

from twinbed.model.error import TwinbedError

MOST_BYTES = 16 * 2**20
"""The most bytes of a program's output kept in memory, and the same of its error output."""
MOST_WORDS_BYTES = 2**20
"""The most bytes kept of the error output of a program that stays."""
_ROOM_SHARE = 0.5
"""The share of the free space that one program may write into a file."""
_READ_BYTES = 1 << 16
_KILLED_LIMIT_S = 10.0
_LOG = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")


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
    """A program that could not be started, failed, took too long or wrote too much; keeps its error output."""

    def __init__(self, argv: Sequence[str], why: str, stderr: bytes = b"", code: int | None = None) -> None:
        tail = stderr[-MOST_WORDS_BYTES:].decode(errors="replace").strip().splitlines()[-8:]
        last_lines = "".join(f"\n    {line[:1000]}" for line in tail)
        super().__init__(f"{' '.join(map(str, argv))}: {why}{last_lines}")
        self.argv = tuple(argv)
        self.why = why
        self.code = code
        self.stderr = stderr


class Brood:
    """The running programs that a thread has started through this module. Another thread can end them: a thread that waits for
    a program gets no Ctrl-C."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._over = False

    def add(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.add(process)
            if self._over:
                kill(process)

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.discard(process)

    def end(self) -> None:
        """Kill them, and all programs started later."""
        with self._lock:
            self._over = True
            for process in self._running:
                kill(process)


_BROOD: ContextVar[Brood | None] = ContextVar("brood", default=None)
"""The brood of the thread that starts a program; None if no other thread has to end it."""


def side_by_side(function: Callable[[T], R], items: Sequence[T], begun: list[Future[R]] | None = None) -> list[Future[R]]:
    """Call the function with each item, in a thread each, and wait for all. Calls are added to ``begun`` as they begin.

    On Ctrl-C, programs that the calls have started through this module are killed, so that each call ends with its error."""
    calls: list[Future[R]] = [] if begun is None else begun
    broods = [Brood() for _ in items]

    def in_brood(brood: Brood, item: T) -> R:
        _BROOD.set(brood)
        return function(item)

    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        try:
            for brood, item in zip(broods, items, strict=True):
                calls.append(pool.submit(in_brood, brood, item))
            wait(calls)
        except BaseException:
            # Leaving the pool waits for its threads. A call may have begun before it was added to the list.
            for number, brood in enumerate(broods):
                if number >= len(calls) or not calls[number].done():
                    brood.end()
            raise
    return calls


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
    most_bytes: int | None = None,
) -> Completed:
    """Run a program to its end.

    Add ``env`` to the environment. Read the input from ``stdin``, bytes or a file at its present position. Write output to
    ``stdout`` and error output to ``log`` if these files are given. Allow ``most_bytes`` for each: by default MOST_BYTES in
    memory, or half of the free space in a file. Kill a program that exceeds a limit, with its process group.

    Raises ProcessFailed when it cannot start, exceeds ``limit_s`` or ``most_bytes``, or (with ``check``) its code is not 0.
    """
    started = time.monotonic()
    content = stdin if isinstance(stdin, bytes) else None
    with contextlib.ExitStack() as stack:
        out, err = (_Sink.open(stack, path, most_bytes) for path in (stdout, log))
        process = _started(
            argv,
            cwd=cwd,
            env={**os.environ, "PATH": _path(), **(env or {})},
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        stack.callback(_forget, process)
        try:
            _exchange(argv, process, content, (out, err), started + limit_s, limit_s)
        except BaseException:
            kill(process)
            raise
    completed = Completed(tuple(argv), process.returncode, bytes(out.kept), bytes(err.kept), time.monotonic() - started)
    _LOG.info("ran %s: exit code %d after %.2f s", shlex.join(map(str, argv)), completed.code, completed.seconds)
    if check and completed.code != 0:
        output = completed.stderr or (last_bytes(log) if log else completed.stdout)
        raise ProcessFailed(argv, f"exit code {completed.code}", output, completed.code)
    return completed


@dataclass(slots=True)
class _Sink:
    """The place of one stream of a program: memory or a file."""

    most: int
    file: BinaryIO | None
    kept: bytearray
    size: int = 0

    @classmethod
    def open(cls, stack: contextlib.ExitStack, path: Path | None, most_bytes: int | None) -> _Sink:
        if path is None:
            return cls(MOST_BYTES if most_bytes is None else most_bytes, None, bytearray())
        file = stack.enter_context(path.open("wb"))
        room = int(shutil.disk_usage(path.parent).free * _ROOM_SHARE)
        return cls(room if most_bytes is None else most_bytes, file, bytearray())

    def take(self, data: bytes) -> bool:
        """Take bytes. Return whether they were within the limit."""
        self.size += len(data)
        if self.size > self.most:
            return False
        if self.file:
            self.file.write(data)
        else:
            self.kept += data
        return True


def _exchange(
    argv: Sequence[str],
    process: subprocess.Popen[bytes],
    content: bytes | None,
    sinks: tuple[_Sink, _Sink],
    deadline: float,
    limit_s: float,
) -> None:
    """Feed and read the program until it has closed its streams and ended."""
    out, err = sinks
    left = memoryview(content or b"")
    with selectors.DefaultSelector() as selector:
        for stream, sink in ((process.stdout, out), (process.stderr, err)):
            selector.register(_open(stream), selectors.EVENT_READ, sink)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if time.monotonic() > deadline:
                raise ProcessFailed(argv, f"not done after {limit_s:g} s", bytes(err.kept))
            for key, _ in ready:
                if key.data is None:
                    left = left[_fed(key.fd, left) :]
                    if not left:
                        selector.unregister(key.fileobj)
                        _close(process.stdin)
                elif not (data := os.read(key.fd, _READ_BYTES)):
                    selector.unregister(key.fileobj)
                elif not key.data.take(data):
                    what = "output" if key.data is out else "error output"
                    why = f"wrote more than {key.data.most:,} bytes of {what} and was killed"
                    raise ProcessFailed(argv, why, bytes(err.kept))
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ProcessFailed(argv, f"not done after {limit_s:g} s", bytes(err.kept)) from None


def _fed(pipe: int, content: memoryview) -> int:
    """Write to the program and return how many bytes it took; all of them if it takes no more."""
    try:
        return os.write(pipe, content[:_READ_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(content)


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        with contextlib.suppress(OSError):
            stream.close()


def _started(argv: Sequence[str], **how: object) -> subprocess.Popen[bytes]:
    """Start a program in a session and a process group of its own."""
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(list(argv), start_new_session=True, **how)  # type: ignore[call-overload]
    except FileNotFoundError as error:
        raise ProcessFailed(argv, f"no such program ({error.filename})") from None
    except PermissionError as error:
        raise ProcessFailed(argv, f"may not be started: {error.strerror}") from None
    except OSError as error:
        raise ProcessFailed(argv, f"cannot be started: {error.strerror}") from None
    if (brood := _BROOD.get()) is not None:
        brood.add(process)
    return process


def _forget(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        _close(stream)
    if (brood := _BROOD.get()) is not None:
        brood.remove(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program of this module with its process group, even if it is stopped, and wait for its end."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_KILLED_LIMIT_S)


class Staying:
    """A program that stays, with ``stream``, if given, as its standard input and output.

    Its error output is kept up to ``most_bytes``. A program that writes more is killed, and ``flooded`` is set."""

    def __init__(self, argv: Sequence[str], stream: socket.socket | None = None, *, most_bytes: int = MOST_WORDS_BYTES) -> None:
        _LOG.info("start %s", shlex.join(map(str, argv)))
        end = subprocess.DEVNULL if stream is None else stream.fileno()
        self._process = _started(argv, stdin=end, stdout=end, stderr=subprocess.PIPE)
        self._most_bytes = most_bytes
        self._words = bytearray()
        self.flooded = False
        self._reader = threading.Thread(target=self._read, name=f"words of {argv[0]}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        with _open(self._process.stderr) as pipe:
            while data := os.read(pipe.fileno(), _READ_BYTES):
                if len(self._words) + len(data) > self._most_bytes:
                    self.flooded = True
                    kill(self._process)
                    return
                self._words += data

    def words(self) -> str:
        """Return its error output so far; all of it if it has ended."""
        if self._process.poll() is not None:
            self._reader.join(1.0)  # a program that it started may hold the pipe open
        return bytes(self._words).decode(errors="replace").strip()

    def code(self, limit_s: float) -> int | None:
        """Wait for its exit code; None if it has not ended by then."""
        try:
            return self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def end(self, limit_s: float) -> int | None:
        """Wait for its exit code. If it does not end by itself, kill it and return None."""
        if (code := self.code(limit_s)) is None:
            _LOG.info("process %d does not end after %g s: it is killed", self.pid, limit_s)
            kill(self._process)
        if (brood := _BROOD.get()) is not None:
            brood.remove(self._process)
        return code

    def ask_to_end(self) -> None:
        self._process.terminate()


def start(argv: Sequence[str], *, keep_open: Sequence[int] = (), log: Path | None = None) -> subprocess.Popen[bytes]:
    """Start one of twinbed's own programs, which stays and inherits the file descriptors ``keep_open``."""
    _LOG.info("start %s", shlex.join(map(str, argv)))
    with (log or Path(os.devnull)).open("ab") as err:
        return _started(argv, stdin=subprocess.DEVNULL, stdout=err, stderr=err, pass_fds=tuple(keep_open))


def last_bytes(path: Path, most_bytes: int = MOST_WORDS_BYTES) -> bytes:
    """Return the end of a file that a program may have filled; nothing without a file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most_bytes))
            return file.read(most_bytes)
    except OSError:
        return b""


def _path() -> str:
    """Return the search path of programs, with the folders of system programs that a user's PATH (or that of `su`) may lack."""
    return f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin"
