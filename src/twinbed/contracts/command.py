"""A program to run on a host: plugins plan it, the lab starts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

PROGRAM_BYTES = 3 * 2**20
"""The default memory of a program: on 80 hosts nginx took 2.8 MB, ab 1.3, iperf3 2.4, irtt 2.5, counters 0.2."""
PROGRAM_TASKS = 2
"""A program, and the thread of the agent that waits for it."""
PRELOAD = "libtwinbed_preload.so"
"""The library in ``{bin}`` that is preloaded into tcpdump (crates/preload)."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The sign that a started program is ready: exactly one of the three."""

    listening: int | None = None
    """A port that it listens on, seen from its own host."""
    says: bytes | Callable[[bytes], bool] | None = None
    """A text on its standard output or error, or a test of either."""
    after_s: float | None = None
    """A fixed time, for a program of the user that gives no other sign."""
    protocol: Literal["tcp", "udp"] = "tcp"
    """The protocol of the port."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run on a host: an argument list, never a shell string.

    In arguments and the environment ``{artifacts}`` is the host's folder that is collected into the run folder, ``{bin}`` the
    folder of twinbed's own programs, and ``{address:HOST}`` the address of a host."""

    host: str
    argv: tuple[str, ...]
    stdout: str | None = None
    """Name of the artifact with its standard output; None: ``<program>.out``."""
    ready: Ready | None = None
    """For a program that stays; None for a program that runs to its end."""
    stop: int = 15
    """The signal that ends a program that stays."""
    drained: Callable[[bytes], bool] | None = None
    """For a program that buffers: called with its error output after each SIGUSR1, until it returns that all is written."""
    env: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 30.0
    """Time limit to become ready; for a program that runs to its end, to end."""
    exits: tuple[int, ...] = (0,)
    """Exit codes of a good end, for a program that runs to its end."""
    stop_limit_s: float | None = None
    """Time limit for a program that stays to end after its signal; None: the usual limit."""
    round: int = 0
    """Order among programs that start together: a lower round is ready before a higher one starts, and ends after it."""
    memory_bytes: int = PROGRAM_BYTES
    """The most memory that it takes of the machine, or of its container."""
    tasks: int = PROGRAM_TASKS
    """The most processes and threads, likewise."""
    root: str | None = None
    """The folder of the host that is its root file system; None: the host's own."""
    real_root: bool = False
    """It needs the machine's own root on a host without its own kernel: eBPF, system-wide counts."""
