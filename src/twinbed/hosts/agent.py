"""A host reached through its agent: a container, a guest, or the machine's side of a lab, all in the same way.

Programs are argument lists. Times are seconds; limits are given by the caller and never silently extended.
"""

from __future__ import annotations

import logging
import re
import secrets
import shlex
import shutil
import signal as signals
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from twinbed.contracts.host import Exit
from twinbed.hosts import connection as wire
from twinbed.hosts import files
from twinbed.hosts import nic as nics
from twinbed.hosts.connection import Channel, Connection
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed
from twinbed.hosts.nic import NicState
from twinbed.model.json import Document, document, documents, integer, number, text, truth
from twinbed.model.usage import Usage

PROBE = "twinbed-probe"
_LOG = logging.getLogger(__name__)
_CHUNK_BYTES = 256 * 1024
MOST_OUTPUT_BYTES = 64 * 2**20
"""The most bytes of a program's output, or of a file, that are kept in memory: a host is not trusted to end."""
MOST_KEPT_BYTES = 2 * MOST_OUTPUT_BYTES
"""The same for all running programs of all hosts together: many of them may flood this process."""
_INTO_A_FILE = "let it write to a file among the artifacts"
_ENTROPY_BYTES = 32
_BEYOND_S = 30.0
"""An agent on a busy machine may need this much longer than its limit."""
_ACCEPT_STEP_S = 0.05
"""How often to check whether a starting host has ended instead."""


@dataclass(frozen=True, slots=True)
class FileThere:
    """An entry of a host's folder."""

    name: str
    kind: str
    bytes: int


class _Kept:
    """Counts the bytes that running programs have printed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._size = 0

    def grow(self, size: int) -> bool:
        """Count more bytes. Return whether there was room."""
        with self._lock:
            if size > 0 and self._size + size > MOST_KEPT_BYTES:
                return False
            self._size += size
            return True


_KEPT = _Kept()


class Running(Channel):
    """A program that runs on a host."""

    def __init__(self, connection: Connection, argv: Sequence[str], request: Document, stdin: bytes) -> None:
        super().__init__(connection, argv[0])
        self.argv = tuple(argv)
        self.host = connection.name
        self.pid: int | None = None
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._counted = 0
        self._exit: Exit | None = None
        self.send(wire.EXEC, {**request, "argv": list(argv), "stdin": bool(stdin)})
        if stdin:
            for start in range(0, len(stdin), _CHUNK_BYTES):
                self.send(wire.STDIN, stdin[start : start + _CHUNK_BYTES])
            self.send(wire.STDIN, b"")

    def receive(self, kind: int, payload: bytes) -> None:
        if kind in (wire.STDOUT, wire.STDERR):
            if self._counted + len(payload) > MOST_OUTPUT_BYTES:
                raise HostError(f"{self.argv[0]} printed more than {MOST_OUTPUT_BYTES:,} bytes: {_INTO_A_FILE}")
            if not _KEPT.grow(len(payload)):
                raise HostError(f"the programs of all hosts printed more than {MOST_KEPT_BYTES:,} bytes: {_INTO_A_FILE}")
            self._counted += len(payload)
            if kind == wire.STDOUT:
                self.stdout += payload
            else:
                self.stderr += payload
        elif kind == wire.STARTED:
            self.pid = integer(wire.object_of(payload)["pid"])
        elif kind == wire.EXIT:
            self._exit = _ended(wire.object_of(payload))
        else:
            super().receive(kind, payload)

    @property
    def ended(self) -> bool:
        return self._exit is not None

    def started(self, limit_s: float = 10.0) -> int:
        """Wait for its start and return its process id on its host; a held program counts once it is held."""
        self.until(lambda: self.pid is not None, limit_s)
        assert self.pid is not None
        return self.pid

    def says(self, text: bytes | Callable[[bytes], bool], limit_s: float) -> None:
        """Wait until its output or error output holds ``text``. Raises ProgramFailed if it ends without."""

        def is_there() -> bool:
            if callable(text):
                return text(bytes(self.stderr)) or text(bytes(self.stdout))
            return text in self.stderr or text in self.stdout

        self.until(lambda: is_there() or self.ended, limit_s)
        if not is_there():
            raise ProgramFailed(self.host, self.argv, f"{self._outcome().why} before it was ready", bytes(self.stderr))

    def fail(self, failure: HostError) -> None:
        super().fail(failure)
        self._forget()

    def close(self) -> None:
        super().close()
        self._forget()

    def _forget(self) -> None:
        """Stop counting its output, which grows no more and is soon dropped or among the artifacts."""
        with self.changed:
            _KEPT.grow(-self._counted)
            self._counted = 0

    def usage(self, limit_s: float = 10.0) -> Usage:
        channel = Channel(self._connection, f"asking what {self.argv[0]} has used")
        channel.send(wire.USAGE, {"pid": self.started()})
        return channel.understood(_usage, limit_s)

    def signal(self, number: int, *, group: bool = True) -> None:
        if not self.ended:
            self.send(wire.SIGNAL, {"signal": int(number), "group": group})

    def release(self, at_s: float) -> None:
        """Start a held program at a moment of the host's monotonic clock, or at once if it has passed."""
        self.send(wire.RELEASE, {"at_monotonic_s": at_s})

    def wait(self, limit_s: float) -> Exit:
        """Wait until it ends. Past the limit it is killed and LimitExceeded raised."""
        try:
            self.until(lambda: self.ended, limit_s)
        except LimitExceeded:
            self.signal(signals.SIGKILL)
            last_lines = bytes(self.stderr or self.stdout).decode(errors="replace").strip().splitlines()[-4:]
            raise LimitExceeded(
                f"{self.host}: {' '.join(self.argv)}: not done after {limit_s:g} s"
                + "".join(f"\n    {line}" for line in last_lines)
            ) from None
        finally:
            self.close()
        return self._outcome()

    def _outcome(self) -> Exit:
        assert self._exit is not None
        return replace(self._exit, stdout=bytes(self.stdout), stderr=bytes(self.stderr))


def _ended(data: Document) -> Exit:
    """Read an agent's report of an end, without output. Raises KeyError or TypeError for anything else."""
    code, signal = (None if data[name] is None else integer(data[name]) for name in ("code", "signal"))
    started_s, ended_s = number(data["started_monotonic_s"]), number(data["ended_monotonic_s"])
    return Exit(code, signal, b"", b"", _usage(document(data["usage"])), integer(data["max_rss_bytes"]), started_s, ended_s)


class _Fetch(Channel):
    """Copies a file of the host into ``sink``. A file longer than ``most_bytes`` ends the connection."""

    def __init__(self, connection: Connection, path: str, sink: BinaryIO, most_bytes: int) -> None:
        super().__init__(connection, f"reading {path}")
        self._sink = sink
        self._path = path
        self._most_bytes = most_bytes
        self._bytes = 0
        self._error: OSError | None = None
        self.send(wire.READ, {"path": path})

    def receive(self, kind: int, payload: bytes) -> None:
        if kind != wire.DATA:
            super().receive(kind, payload)
            return
        self._bytes += len(payload)
        if self._bytes > self._most_bytes:
            raise HostError(f"{self._path} is longer than the {self._most_bytes:,} bytes that this host may send")
        if self._error is None:
            try:
                self._sink.write(payload)
            except OSError as error:
                self._error = error

    def finish(self, limit_s: float) -> int:
        self.result(limit_s)
        if self._error:
            raise self._error
        return self._bytes


@dataclass(frozen=True)
class AgentHost:
    """A host with an agent. ``artifacts`` is its folder for files that are kept. ``shared`` is the same folder as this machine
    sees it; with it nothing has to be fetched."""

    name: str
    connection: Connection
    artifacts: str
    shared: Path | None = None
    bin: str = "/usr/bin"
    """The folder of twinbed's own programs on this host."""

    @property
    def lost(self) -> bool:
        """Return whether its agent is gone."""
        return self.connection.lost

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cpus: Sequence[int] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        held: bool = False,
    ) -> Running:
        """Start a program. ``held``: it waits before its first instruction until it is released."""
        if argv[0] == PROBE:
            argv = [f"{self.bin}/{PROBE}", *argv[1:]]
        request: Document = {
            "env": dict(env) if env else None,
            "cwd": cwd,
            "cpus": list(cpus) if cpus else None,
            "held": held,
        }
        return Running(self.connection, argv, request, stdin)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cpus: Sequence[int] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limit_s: float = 30.0,
        check: bool = True,
    ) -> Exit:
        """Run a program to its end. Raises ProgramFailed unless it ends with code 0 or ``check`` is false."""
        done = self.start(argv, stdin=stdin, cpus=cpus, env=env, cwd=cwd).wait(limit_s)
        _LOG.info("%s: ran %s: %s", self.name, shlex.join(argv), done.why)
        if check and done.code != 0:
            raise ProgramFailed(self.name, argv, done.why, done.stderr or done.stdout)
        return done

    def fetch(self, path: str, to: Path, *, limit_s: float = 120.0, most_bytes: int | None = None) -> int:
        """Copy a file of the host to this machine and return its size in bytes. Raises HostLost beyond ``most_bytes``, by
        default half of the free space."""
        most = _room_bytes(to.parent) if most_bytes is None else most_bytes
        with to.open("wb") as sink:
            return _Fetch(self.connection, path, sink, most).finish(limit_s)

    def read(self, path: str, *, limit_s: float = 30.0) -> bytes:
        sink = BytesIO()
        _Fetch(self.connection, path, sink, MOST_OUTPUT_BYTES).finish(limit_s)
        return sink.getvalue()

    def write(self, path: str, content: bytes, *, mode: int | None = None, limit_s: float = 30.0) -> None:
        channel = Channel(self.connection, f"writing {path}")
        channel.send(wire.WRITE, {"path": path, "mode": mode, "parents": True})
        for start in range(0, len(content), _CHUNK_BYTES):
            channel.send(wire.DATA, content[start : start + _CHUNK_BYTES])
        channel.send(wire.END, {})
        channel.result(limit_s)

    def listdir(self, path: str, *, limit_s: float = 10.0) -> list[FileThere]:
        channel = Channel(self.connection, f"listing {path}")
        channel.send(wire.LIST, {"path": path})
        return channel.understood(_listing, limit_s)

    def listening(self, port: int, limit_s: float, protocol: Literal["tcp", "udp"] = "tcp") -> float:
        """Wait until a program listens on a port, and return the seconds waited."""
        channel = Channel(self.connection, f"waiting for {protocol.upper()} port {port}")
        channel.send(wire.LISTENING, {"port": port, "protocol": protocol, "limit_s": limit_s})
        return channel.understood(lambda answer: number(answer["waited_s"]), limit_s + 5.0)

    def nic(self, device: str, *, limit_s: float = 10.0) -> NicState:
        """Return a NIC as the host's kernel describes it. Raises HostError if there is no such NIC."""
        channel = Channel(self.connection, f"reading the state of {device}")
        channel.send(wire.NIC, {"device": device})
        return channel.understood(nics.read, limit_s)

    def reaches(self, address: str, limit_s: float) -> bool:
        channel = Channel(self.connection, f"waiting for an answer from {address}")
        channel.send(wire.REACH, {"address": address, "limit_s": limit_s})
        return channel.understood(lambda answer: truth(answer["reached"]), limit_s + _BEYOND_S)

    def ping(self, limit_s: float = 5.0) -> Mapping[str, float]:
        """Return the host's clocks, and this machine's clock before and after the answer."""
        before = time.time()
        channel = Channel(self.connection, "ping")
        channel.send(wire.PING, {})
        clocks = channel.understood(_clocks, limit_s)
        return {**clocks, "sent_s": before, "received_s": time.time()}

    def resumed(self, limit_s: float = 30.0) -> str:
        """Give a resumed guest the time of day and its own random numbers, and return the first that it drew. Call it before
        any program runs there."""
        channel = Channel(self.connection, "setting its clock and its random numbers")
        channel.send(wire.RESUMED, {"realtime_s": time.time(), "entropy": secrets.token_hex(_ENTROPY_BYTES)})
        return channel.understood(lambda answer: text(answer["boot_id"]) + text(answer["random"]), limit_s)

    def monotonic_ahead_s(self) -> float:
        """Return how far the host's monotonic clock is ahead of this machine's, to within half the time of a ping."""
        before = time.monotonic()
        of_host_s = self.ping()["monotonic_s"]
        return of_host_s - (before + time.monotonic()) / 2

    def collect(self, to: Path, *, limit_s: float = 120.0) -> None:
        """Copy all artifacts to ``to``, at most half of the free space there. A shared folder needs no copy. Raises
        HostError."""
        if self.shared is not None:
            return
        entries = self.listdir(self.artifacts, limit_s=min(limit_s, 10.0))
        if len(entries) > files.MOST_FILES:
            raise HostError(f"{self.name}: {len(entries):,} artifacts are more than {files.MOST_FILES:,}")
        artifacts = [entry for entry in entries if entry.kind == "file"]
        left_bytes, announced_bytes = _room_bytes(to), sum(entry.bytes for entry in artifacts)
        if announced_bytes > left_bytes:
            raise HostError(
                f"{self.name}: its artifacts have {announced_bytes:,} bytes, and half of the free space is {left_bytes:,}"
            )
        for name in [files.plain_name(entry.name, self.name) for entry in artifacts]:
            path = str(PurePosixPath(self.artifacts) / name)
            left_bytes -= self.fetch(path, to / name, limit_s=limit_s, most_bytes=left_bytes)

    def close(self) -> None:
        self.connection.close()


def _usage(answer: Document) -> Usage:
    return Usage(number(answer["cpu_s"]), integer(answer["voluntary_switches"]), integer(answer["involuntary_switches"]))


def _listing(answer: Document) -> list[FileThere]:
    return [
        FileThere(text(entry["name"]), text(entry["kind"]), integer(entry["bytes"])) for entry in documents(answer["entries"])
    ]


def _clocks(answer: Document) -> dict[str, float]:
    return {name: number(answer[name]) for name in ("monotonic_s", "realtime_s")}


def _room_bytes(folder: Path) -> int:
    return int(shutil.disk_usage(folder).free * files.ROOM_SHARE)


def cpus_allowed(status: str) -> tuple[int, ...]:
    """Read the CPUs in ``Cpus_allowed_list`` of a /proc/PID/status: "0-2,5" is (0, 1, 2, 5)."""
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    if match is None:
        raise ValueError("the status of a process has no Cpus_allowed_list")
    return parse_cpus(match[1])


def parse_cpus(text: str) -> tuple[int, ...]:
    """Read the kernel's list format: "0-2,5" is (0, 1, 2, 5)."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def listen(path: Path) -> socket.socket:
    """Open a socket for one agent."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)
    return server


def new_key() -> str:
    """Make the secret that one agent has to give in its greeting."""
    return secrets.token_hex(16)


def accept(server: socket.socket, name: str, starter: Running, limit_s: float, key: str) -> Connection:
    """Wait for the agent, with ``key``, that ``starter`` (a container's or a guest's process) brings up.

    Raises HostError as soon as that process has ended, LimitExceeded after the limit; both with its error output.
    """
    deadline = time.monotonic() + limit_s
    server.settimeout(_ACCEPT_STEP_S)
    while True:
        try:
            stream = server.accept()[0]
        except TimeoutError:
            stderr = bytes(starter.stderr).decode(errors="replace").strip()
            if starter.ended:
                raise HostError(f"{name}: {starter.argv[0]} ended before the host was up: {stderr}") from None
            if time.monotonic() > deadline:
                raise LimitExceeded(f"{name}: no agent after {limit_s:g} s{': ' if stderr else ''}{stderr}") from None
        else:
            stream.settimeout(None)
            return Connection(name, stream, key=key)
