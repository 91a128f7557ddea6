"""QEMU's threads of each guest on CPUs of their own, set on the guest's node by the process id of ``vm info``.

minimega's ``optimize affinity`` is not used: it hands taskset the index of a CPU as a mask, so that guests get other CPUs than
meant, some of them shared, and CPU 0 is refused (recorded from 3.1.0).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import share_cpus
from twinbed.hosts.agent import cpus_allowed, parse_cpus
from twinbed.hosts.error import HostError
from twinbed.hosts.processors import cores_first
from twinbed.model.caution import Caution, Kind
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.launch import Wanted
from twinbed.testbeds.minimega.machine import Machine

SOURCE = "/proc/PID/task/TID/status"
_SIBLINGS = "grep -sH . /sys/devices/system/cpu/cpu*/topology/thread_siblings_list; true"
_STATUS = "Cpus_allowed_list:"
_LOOKS = 20
"""How often, each 0.1 s, to look whether a process that minimega has just started has become QEMU."""


def pin(
    head: Head, machine_of: Mapping[str, Machine], guests: Sequence[Wanted], vcpus: int
) -> tuple[list[Applied], list[Caution]]:
    """As many CPUs for each guest of a node as it has vCPUs, in turn, of those that programs on the node may use. Raises
    HostError where a process cannot be pinned, or is not the guest's."""
    applied: list[Applied] = []
    cautions: list[Caution] = []
    for node in sorted({machine.node for machine in machine_of.values()}):
        machines = [machine_of[guest.name] for guest in guests if machine_of[guest.name].node == node]
        available = node_cpus(head, node)
        for machine, cpus in zip(machines, share_cpus([vcpus] * len(machines), available), strict=True):
            place(head, machine, cpus)
            applied.append(read_back(head, machine, cpus))
        if (wanted := vcpus * len(machines)) > len(available):
            detail = f"{node}: {len(machines)} hosts want {wanted} CPUs of their own, and there are {len(available)}"
            cautions.append(Caution(Kind.SHARED_CPU, detail))
    return applied, cautions


def node_cpus(head: Head, node: str) -> tuple[int, ...]:
    """The CPUs of a node, one of each core first."""
    cpus = cpus_allowed(head.run(node, "cat /proc/self/status"))
    rows = re.findall(r"/cpu(\d+)/topology/thread_siblings_list:(\S+)$", head.run(node, _SIBLINGS), re.MULTILINE)
    siblings = {cpu: (cpu,) for cpu in cpus} | {int(cpu): parse_cpus(cores) for cpu, cores in rows}
    return cores_first(cpus, siblings)


def place(head: Head, machine: Machine, cpus: Sequence[int]) -> None:
    pid, folder = _pid(machine), f"{head.base}/{machine.data['ID']}/"
    asked = f"grep -caF {shlex.quote(folder)} /proc/{pid}/cmdline"
    looks = f"for _ in $(seq {_LOOKS}); do {asked} && break; sleep 0.1; done; true"
    if head.run(machine.node, looks).split()[-1:] in ([], ["0"]):
        raise HostError(
            f"{machine.name}: process {pid} of {machine.node}, which `vm info` gives, has no file of {folder} and is not the"
            " guest's QEMU; does minimega run in another PID namespace? Use cpus: none"
        )
    head.run(machine.node, f"taskset --all-tasks --cpu-list --pid {','.join(map(str, cpus))} {pid}")


def read_back(head: Head, machine: Machine, cpus: Sequence[int]) -> Applied:
    """The CPUs of all threads; of each set of them, where they differ."""
    text = head.run(machine.node, f"cat /proc/{_pid(machine)}/task/*/status; true")
    threads = sorted({cpus_allowed(line) for line in text.splitlines() if line.startswith(_STATUS)})
    found = threads[0] if len(threads) == 1 else tuple(threads) or None
    return Applied(machine.name, "cpus", tuple(cpus), found, SOURCE)


def _pid(machine: Machine) -> int:
    try:
        return int(machine.row["pid"])
    except ValueError:
        raise HostError(f"{machine.name}: `vm info` gives no process id, but {machine.row['pid']!r}") from None
