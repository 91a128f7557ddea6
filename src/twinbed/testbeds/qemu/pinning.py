"""On which CPUs the threads of a guest's QEMU may run: each vCPU on one of its own where there are enough, all else on any of
the guest's.  Threads that move packets for the guest (vhost) are among QEMU's own since Linux 6.4, and so among all else."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from twinbed.contracts.bed import Applied
from twinbed.hosts.agent import AgentHost, cpus_allowed
from twinbed.hosts.error import HostError

SOURCE = "/proc/PID/task/TID/status"


def shares(vcpus: int, cpus: Sequence[int]) -> list[tuple[int, ...]]:
    """The CPUs of each vCPU: one of its own, or all of the guest's where there are fewer than vCPUs.

    >>> shares(2, (0, 1, 5))
    [(0,), (1,)]
    >>> shares(2, (4,))
    [(4,), (4,)]
    """
    if vcpus > len(cpus):
        return [tuple(cpus)] * vcpus
    return [(cpu,) for cpu in cpus[:vcpus]]


def pin(machine: AgentHost, threads: Sequence[int], cpus: Sequence[int]) -> None:
    """``threads`` are those of the vCPUs in turn, by their ids on the machine; QEMU was started on the guest's CPUs, and its
    other threads stay there."""
    for thread, share in zip(threads, shares(len(threads), cpus), strict=True):
        if len(share) < len(cpus):
            machine.run(["taskset", "--cpu-list", "--pid", ",".join(map(str, share)), str(thread)])


def applied(
    machine: AgentHost, guest: str, pid: int, threads: Sequence[int], cpus: Sequence[int] | None
) -> tuple[list[Applied], Mapping[str, tuple[int, ...]]]:
    """The CPUs that each thread may run on, read back; and the same by the threads' names, which QEMU's own threads share."""
    asked: Sequence[tuple[int, ...] | None] = shares(len(threads), cpus) if cpus else [None] * len(threads)
    cpus_of: dict[str, tuple[int, ...]] = {}
    items = []
    for number, (thread, share) in enumerate(zip(threads, asked, strict=True)):
        own = _allowed(machine, pid, thread)
        cpus_of[f"vCPU {number}"] = own
        items.append(Applied(guest, f"vcpu{number}.cpus", share, own, SOURCE))
    others = set()
    for entry in machine.listdir(f"/proc/{pid}/task"):
        thread = int(entry.name)
        if thread in threads:
            continue
        with contextlib.suppress(HostError):  # QEMU's workers come and go
            own = _allowed(machine, pid, thread)
            others.add(own)
            cpus_of[_name(machine, pid, thread)] = own
    whole = others.pop() if len(others) == 1 else tuple(sorted(others))
    return [Applied(guest, "cpus", tuple(cpus) if cpus else None, whole, SOURCE), *items], cpus_of


def _allowed(machine: AgentHost, pid: int, thread: int) -> tuple[int, ...]:
    return cpus_allowed(machine.read(f"/proc/{pid}/task/{thread}/status").decode(errors="replace"))


def _name(machine: AgentHost, pid: int, thread: int) -> str:
    """A thread's name without the process's number that vhost's threads carry."""
    return machine.read(f"/proc/{pid}/task/{thread}/comm").decode(errors="replace").strip().removesuffix(f"-{pid}")
