"""What hosts and programs take of the machine that carries them, as their settings say it (``contracts/params``)."""

from __future__ import annotations

from dataclasses import dataclass

PROGRAM_BYTES = 3 * 2**20
"""Of a program that says nothing of itself: on 80 hosts nginx took 2.8 MB, ab 1.3, iperf3 2.4, irtt 2.5, counters 0.2."""
PROGRAM_TASKS = 2
"""A program, and the thread of the agent that waits for it."""


@dataclass(frozen=True, slots=True)
class HostNeed:
    """What one host takes of its machine, without the programs on it."""

    memory_bytes: int
    tasks: int
    """Processes and threads on the machine."""
    made_of: str
    """For readers, such as ``a guest of 256MiB with 192MiB for QEMU``."""
    own_memory: bool = False
    """Whether programs on it are within its memory, whatever they take."""
    limit_bytes: int | None = None
    """The most that it may take, with its programs."""
    address_space_bytes: int = 0
    """Of its largest process."""


@dataclass(frozen=True, slots=True)
class ProgramNeed:
    """What one program takes of the machine or of a container."""

    memory_bytes: int = PROGRAM_BYTES
    tasks: int = PROGRAM_TASKS
