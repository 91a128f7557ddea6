"""A program to run on a host: what plugins plan, and the lab starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

PROGRAM_BYTES = 3 * 2**20
"""Of a program whose plan says nothing else: on 80 hosts nginx took 2.8 MB, ab 1.3, iperf3 2.4, irtt 2.5, counters 0.2."""
PROGRAM_TASKS = 2
"""A program, and the thread of the agent that waits for it."""
PRELOAD = "libtwinbed_preload.so"
"""In ``{bin}``: what is preloaded into tcpdump (crates/preload)."""


@dataclass(frozen=True, slots=True)
class Ready:
    """How to know that a started program is ready. Exactly one of the two is given; there are no fixed sleeps."""

    listening: int | None = None
    """A TCP port that it listens on, seen from its own host."""
    says: bytes | None = None
    """A text on its standard output or error."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run on a host: an argument list, never a shell string. In arguments and the environment ``{artifacts}``
    stands for the folder on that host that is collected into the run folder, ``{bin}`` for where twinbed's own programs are.
    """

    host: str
    argv: tuple[str, ...]
    stdout: str | None = None
    """Name of the artifact that its standard output becomes; None discards nothing: it goes to ``<program>.out``."""
    ready: Ready | None = None
    """Given for a program that stays; None for one that runs to its end."""
    stop: int = 15
    """The signal that ends a program that stays."""
    drained: Callable[[bytes], bool] | None = None
    """For a program that buffers: polled with what it said after SIGUSR1, until it says that all has been written."""
    env: Mapping[str, str] = field(default_factory=dict)
    limit_s: float = 30.0
    """Time limit: to become ready, or for one that runs to its end, to end."""
    stop_limit_s: float | None = None
    """Time limit of a program that stays to end, once it was told to; None is the usual one."""
    round: int = 0
    """Of programs that are started together: those of a lower round are ready before those of a higher are started, and
    are told to end after them."""
    memory_bytes: int = PROGRAM_BYTES
    """What it takes at most of the machine, or of the container that it is in."""
    tasks: int = PROGRAM_TASKS
    """Processes and threads, likewise."""
    real_root: bool = False
    """Whether it needs the machine's own root on a host that has no kernel of its own: eBPF, system-wide counts."""
