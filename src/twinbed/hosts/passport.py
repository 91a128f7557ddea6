"""What a host is made of, read from the host itself. A fact that cannot be had is null."""

from __future__ import annotations

import re

from twinbed.contracts.bed import Fact
from twinbed.hosts.agent import AgentHost
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
    """Kernel, CPUs, memory, TCP settings, and the driver and offloads of ``nic``."""
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
    """What is in a file of the host; None where there is none, or nothing in it."""
    try:
        return host.read(path).decode(errors="replace").strip() or None
    except HostError:
        return None


def line(host: AgentHost, path: str) -> str | None:
    """The same with every run of white space as one blank."""
    text = content(host, path)
    return None if text is None else " ".join(text.split())


def output_of(host: AgentHost, *argv: str) -> str:
    """A program's output; empty where there is no such program."""
    try:
        return host.run(argv, check=False).text
    except HostError:
        return ""


def first(pattern: str, text: str) -> str | None:
    """The group of the first line that matches; None without one, or with nothing in it."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() or None if match else None
