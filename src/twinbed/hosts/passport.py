"""Facts of hosts for their passports: kernel, CPUs, cores, memory, TCP, NIC, virtual or not. An unknown fact is null."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from twinbed.contracts.bed import Fact
from twinbed.hosts.agent import AgentHost, parse_cpus
from twinbed.hosts.error import HostError

_FILES = {
    "kernel": "/proc/sys/kernel/osrelease",
    "kernel build": "/proc/sys/kernel/version",
    "congestion control": "/proc/sys/net/ipv4/tcp_congestion_control",
    "tcp rmem": "/proc/sys/net/ipv4/tcp_rmem",
    "tcp wmem": "/proc/sys/net/ipv4/tcp_wmem",
    "autocorking": "/proc/sys/net/ipv4/tcp_autocorking",
    "clock source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}


def describe(host: AgentHost, nic: str | None) -> dict[str, Fact]:
    """Return kernel, CPUs, memory, TCP settings, and the driver and offloads of ``nic``."""
    facts: dict[str, Fact] = {fact: line(host, path) for fact, path in _FILES.items()}
    if facts["clock source"] == "tsc-early":
        facts["clock source"] = "tsc"  # the same clock, not yet confirmed by the kernel's own calibration
    cpus = content(host, "/proc/cpuinfo") or ""
    facts["cpu"] = first(r"model name\s*: (.*)", cpus)
    facts["cpus"] = len(re.findall(r"^processor\s*:", cpus, re.MULTILINE)) or None
    memory = first(r"MemTotal:\s+(\d+) kB", content(host, "/proc/meminfo") or "")
    facts["memory bytes"] = int(memory) * 1024 if memory else None
    if nic:
        state = host.nic(nic)
        facts["qdisc"] = state.qdisc
        facts["initial window"] = state.initial_window
        facts["NIC driver"] = state.driver
        facts["NIC firmware"] = state.firmware
        facts |= {f"offload {short}": value for short, value in state.offloads.items()}
    return facts


def content(host: AgentHost, path: str) -> str | None:
    """Return the content of a file of the host; None if there is no file or no content."""
    try:
        return host.read(path).decode(errors="replace").strip() or None
    except HostError:
        return None


def line(host: AgentHost, path: str) -> str | None:
    """Return ``content`` with each run of white space as one blank."""
    text = content(host, path)
    return None if text is None else " ".join(text.split())


def output_of(host: AgentHost, *argv: str) -> str:
    """Return a program's output; empty without such a program."""
    try:
        return host.run(argv, check=False).text
    except HostError:
        return ""


def first(pattern: str, text: str) -> str | None:
    """Return the pattern's group in the first line that matches; None without a match, or if it is empty."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() or None if match else None


_CPUS = "/sys/devices/system/cpu"
_SIBLINGS = f"{_CPUS}/cpu{{}}/topology/thread_siblings_list"
_SMT = f"{_CPUS}/smt/control"
_MAKERS = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name")
_HYPERVISOR = "/sys/hypervisor/type"
_NESTED = ("/sys/module/kvm_intel/parameters/nested", "/sys/module/kvm_amd/parameters/nested")


def own_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may use, in the order in which hosts get them."""
    cpus = sorted(os.sched_getaffinity(0))
    siblings = {}
    for cpu in cpus:
        try:
            siblings[cpu] = parse_cpus(Path(_SIBLINGS.format(cpu)).read_text())
        except (OSError, ValueError):
            siblings[cpu] = (cpu,)
    return cores_first(cpus, siblings)


def cores_first(cpus: Sequence[int], siblings: Mapping[int, Sequence[int]]) -> tuple[int, ...]:
    """Sort CPUs: one of each core first, then the second of each, and so on. Hosts share a core only if there are too few.

    >>> cores_first([0, 1, 2, 3], {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)})
    (0, 2, 1, 3)
    """
    return tuple(sorted(cpus, key=lambda cpu: ([other for other in siblings[cpu] if other in cpus].index(cpu), cpu)))


def processors(machine: AgentHost) -> dict[str, Fact]:
    """Return a machine's cores, maker and hypervisor; null for facts that it does not report."""
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
