"""A machine's processors: which CPUs share a core, and whether the machine is itself a virtual one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from twinbed.contracts.bed import Fact
from twinbed.hosts.agent import AgentHost, parse_cpus
from twinbed.hosts.passport import line

_CPUS = "/sys/devices/system/cpu"
_SIBLINGS = f"{_CPUS}/cpu{{}}/topology/thread_siblings_list"
_SMT = f"{_CPUS}/smt/control"
_MAKERS = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name")
_HYPERVISOR = "/sys/hypervisor/type"
_NESTED = ("/sys/module/kvm_intel/parameters/nested", "/sys/module/kvm_amd/parameters/nested")


def own_cpus() -> tuple[int, ...]:
    """The CPUs that this process may use, in the order in which hosts are to be given them."""
    cpus = sorted(os.sched_getaffinity(0))
    siblings = {}
    for cpu in cpus:
        try:
            siblings[cpu] = parse_cpus(Path(_SIBLINGS.format(cpu)).read_text())
        except (OSError, ValueError):
            siblings[cpu] = (cpu,)
    return cores_first(cpus, siblings)


def cores_first(cpus: Sequence[int], siblings: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """One CPU of each core, then the second of each, and so on: hosts share a core only when there are too few.

    >>> cores_first([0, 1, 2, 3], {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)})
    (0, 2, 1, 3)
    """
    return tuple(sorted(cpus, key=lambda cpu: ([other for other in siblings[cpu] if other in cpus].index(cpu), cpu)))


def processors(machine: AgentHost) -> dict[str, Fact]:
    """Facts for a machine's passport; null where the machine does not say."""
    online = line(machine, f"{_CPUS}/online")
    cores = (
        dict.fromkeys(siblings for cpu in parse_cpus(online) if (siblings := line(machine, _SIBLINGS.format(cpu))))
        if online
        else {}
    )
    info = line(machine, "/proc/cpuinfo") or ""
    makers = [maker for path in _MAKERS if (maker := line(machine, path))]
    return {
        "SMT": line(machine, _SMT),
        "CPUs by core": " ".join(cores) or None,
        "virtual": " hypervisor " in f"{info} " if info else None,
        "hypervisor": line(machine, _HYPERVISOR),
        "made by": ", ".join(makers) or None,
        "KVM nested": next((nested for path in _NESTED if (nested := line(machine, path))), None),
    }
