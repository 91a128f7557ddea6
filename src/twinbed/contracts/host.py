"""A host of a testbed, and a program that runs on it: what the lab may ask of any of them, whatever makes it."""

from __future__ import annotations

import signal as signals
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Protocol

from twinbed.model.usage import Usage


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program on a host ended; times are on that host's monotonic clock."""

    code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    usage: Usage | None
    """None of a program that is no process."""
    max_rss_bytes: int
    started_monotonic_s: float
    """When it had become the program that it is; of one that was held, when it was let go."""
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

    Every method raises HostError where the host is lost, and LimitExceeded after its time limit.
    """

    host: str
    """The host's name."""
    argv: tuple[str, ...]
    stdout: bytearray
    """What it has written so far."""
    stderr: bytearray

    changed: Condition
    """Notified whenever its output or its state changes."""

    @property
    def ended(self) -> bool: ...

    def started(self, limit_s: float = ...) -> int:
        """Its process id on the host, once it is the program that it is, held or not. Raises HostError where it cannot be."""
        ...

    def release(self, at_s: float) -> None:
        """Starts a held program at a moment on the host's monotonic clock; at once where that has passed."""
        ...

    def says(self, text: bytes | Callable[[bytes], bool], limit_s: float) -> None:
        """Waits until its output has ``text``, or satisfies it. Raises ProgramFailed where it ends before."""
        ...

    def usage(self) -> Usage | None:
        """What it has used so far; None of a program that is no process. Raises HostError where it has ended.

        A thread that has ended, or a process that was waited for, leaves its context switches to the program's end."""
        ...

    def signal(self, number: int, *, group: bool = ...) -> None:
        """Sends a signal to it, by default to its whole process group; nothing happens to one that has ended."""
        ...

    def wait(self, limit_s: float) -> Exit: ...


class Host(Protocol):
    """A host. Paths are the host's own; every method raises HostError where the host is lost."""

    @property
    def name(self) -> str: ...

    @property
    def artifacts(self) -> str:
        """The folder on it whose files are collected into the run folder."""
        ...

    @property
    def bin(self) -> str:
        """Where twinbed's own programs are on it."""
        ...

    @property
    def lost(self) -> bool:
        """Whether it can no longer be asked anything."""
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
        """Starts a program. ``held``: it is brought up, and waits before its first instruction until it is released."""
        ...

    def run(self, argv: Sequence[str], *, stdin: bytes = ..., limit_s: float = ..., check: bool = ...) -> Exit:
        """Runs a program to its end. Raises ProgramFailed unless it ends with code 0 or ``check`` is false."""
        ...

    def read(self, path: str, *, limit_s: float = ...) -> bytes: ...

    def write(self, path: str, content: bytes, *, mode: int | None = ..., limit_s: float = ...) -> None: ...

    def listening(self, port: int, limit_s: float) -> float:
        """Waits until a TCP port is listened on; returns the seconds waited."""
        ...

    def reaches(self, address: str, limit_s: float) -> bool:
        """Return whether another host's TCP answers within the limit, be it by a refusal."""
        ...

    def ping(self, limit_s: float = ...) -> Mapping[str, float]:
        """The host's clocks (``monotonic_s``, ...), with this machine's clock before and after (``sent_s``, ``received_s``)."""
        ...

    def monotonic_ahead_s(self) -> float:
        """How far its monotonic clock is ahead of this machine's, known to half of what a ping takes."""
        ...

    def collect(self, to: Path, *, limit_s: float = ...) -> None:
        """Brings the files of ``artifacts`` to the folder ``to`` of this machine."""
        ...

    def close(self) -> None: ...
