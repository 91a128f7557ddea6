"""What a run needs of the machine that carries it, and what that machine has."""

from __future__ import annotations

from dataclasses import dataclass

PROGRAM_BYTES = 3 * 2**20
"""Of a program that says nothing of itself: on 80 hosts nginx took 2.8 MB, ab 1.3, iperf3 2.4, irtt 2.5, counters 0.2."""
PROGRAM_TASKS = 2
"""A program, and the thread of the agent that waits for it."""


@dataclass(frozen=True, slots=True)
class HostNeed:
    """What one host takes of its machine, without the programs on it. Settings of a testbed say it by ``host_need()``;
    hosts of testbeds that do not are elsewhere."""

    memory_bytes: int
    tasks: int
    """Processes and threads on the machine."""
    made_of: str
    """For readers, such as ``a guest of 256MiB with 192MiB for QEMU``."""
    own_memory: bool = False
    """Programs on it are within its memory, whatever they take."""
    limit_bytes: int | None = None
    """That it may not take more than, with its programs."""
    address_space_bytes: int = 0
    """Of its largest process."""


@dataclass(frozen=True, slots=True)
class ProgramNeed:
    """What one program takes of the machine or of a container. Settings of instruments and background loads say it by
    ``program_need()``, of workloads by ``server_need()`` and ``client_need()``."""

    memory_bytes: int = PROGRAM_BYTES
    tasks: int = PROGRAM_TASKS


@dataclass(frozen=True, slots=True)
class Need:
    """What a run takes of the machine."""

    host_bytes: int = 0
    """Memory of all hosts, with the programs on them."""
    machine_bytes: int = 0
    """Memory of twinbed itself and of the programs on the machine."""
    tasks: int = 0
    controller_descriptors: int = 0
    agent_descriptors: int = 0
    """Of the agent that starts hosts and programs on the machine."""
    address_space_bytes: int = 0
    """Of the largest process."""

    @property
    def memory_bytes(self) -> int:
        return self.host_bytes + self.machine_bytes

    @property
    def descriptors(self) -> int:
        """That one process holds open: the limit is each process's own."""
        return max(self.controller_descriptors, self.agent_descriptors)


@dataclass(frozen=True, slots=True)
class Room:
    """What a machine has left; None where nothing limits it. Each with the file or limit that says so."""

    memory_bytes: int
    memory_source: str
    tasks: int | None
    tasks_source: str
    descriptors: int | None
    """That a process may be allowed: the hard limit."""
    address_space_bytes: int | None
