"""The contract of a testbed's host and of a program on it, the same for all drivers."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Literal, Protocol

from twinbed.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a program on a host; times are on that host's monotonic clock."""

    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    usage: Usage | None
    """None for a program that is no process."""
    max_rss_bytes: int
    started_monotonic_s: float
    """When the program was executed; for a held program, when it was released."""
    ended_monotonic_s: float

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def why(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        names = {number.value: number.name for number in signals.Signals}
        return f"ended by {names.get(self.signal, f'signal {self.signal}')}"


class Program(Protocol):
    """A program that was started on a host.

    Every method raises HostError if the host is lost, and LimitExceeded after its time limit.
    """

    host: str
    """The host's name."""
    argv: tuple[str, ...]
    stdout: bytearray
    """Its output so far."""
    stderr: bytearray

    changed: Condition
    """Notified whenever its output or its state changes."""

    @property
    def ended(self) -> bool: ...

    def started(self, limit_s: float = ...) -> int:
        """Wait until it is executed, held or not, and return its process id on the host. Raises HostError if it cannot be."""
        ...

    def release(self, at_s: float) -> None:
        """Start a held program at a moment of the host's monotonic clock, or at once if it has passed."""
        ...

    def says(self, text: bytes | Callable[[bytes], bool], limit_s: float) -> None:
        """Wait until its output has ``text``, or satisfies it. Raises ProgramFailed if it ends before."""
        ...

    def usage(self) -> Usage | None:
        """Return its usage so far; None for a program that is no process. Raises HostError if it has ended.

        Context switches of ended threads and of processes that were waited for are counted only at the program's end."""
        ...

    def signal(self, number: int, *, group: bool = ...) -> None:
        """Send a signal to it, by default to its whole process group. Do nothing if it has ended."""
        ...

    def wait(self, limit_s: float) -> Exit: ...


class Host(Protocol):
    """A host. Paths are the host's own; every method raises HostError if the host is lost."""

    @property
    def name(self) -> str: ...

    @property
    def artifacts(self) -> str:
        """Return the folder on the host whose files are collected into the run folder."""
        ...

    @property
    def bin(self) -> str:
        """Return the folder of twinbed's own programs on the host."""
        ...

    @property
    def lost(self) -> bool:
        """Return whether the host can no longer be reached."""
        ...

    def start(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = ...,
        cpus: Sequence[int] | None = ...,
        env: Mapping[str, str] | None = ...,
        cwd: str | None = ...,
        held: bool = ...,
    ) -> Program:
        """Start a program. ``held``: it waits before its first instruction until it is released."""
        ...

    def run(self, argv: Sequence[str], *, stdin: bytes = ..., limit_s: float = ..., check: bool = ...) -> Exit:
        """Run a program to its end. Raises ProgramFailed unless it ends with code 0 or ``check`` is false."""
        ...

    def read(self, path: str, *, limit_s: float = ...) -> bytes: ...

    def write(self, path: str, content: bytes, *, mode: int | None = ..., limit_s: float = ...) -> None: ...

    def listening(self, port: int, limit_s: float, protocol: Literal["tcp", "udp"] = ...) -> float:
        """Wait until a program listens on a port, and return the seconds waited."""
        ...

    def reaches(self, address: str, limit_s: float) -> bool:
        """Return whether another host's TCP answers within the limit; a refusal is an answer."""
        ...

    def ping(self, limit_s: float = ...) -> Mapping[str, float]:
        """Return the host's clocks (``monotonic_s``, ...), and this machine's before and after (``sent_s``, ``received_s``)."""
        ...

    def monotonic_ahead_s(self) -> float:
        """Return how far its monotonic clock is ahead of this machine's, to within half the time of a ping."""
        ...

    def collect(self, to: Path, *, limit_s: float = ...) -> None:
        """Copy the files of ``artifacts`` to the folder ``to`` of this machine."""
        ...

    def close(self) -> None: ...
