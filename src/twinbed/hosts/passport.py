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
INITIAL_WINDOW = 10
OFFLOADS = {
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
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
        about = output_of(host, "ethtool", "-i", nic)
        facts["qdisc"] = first(r"^qdisc (\S+) .*\broot\b", output_of(host, "tc", "qdisc", "show", "dev", nic))
        facts["initial window"] = initial_window(output_of(host, "ip", "route", "show", "dev", nic))
        facts["NIC driver"] = first(r"driver: (.*)", about)
        facts["NIC firmware"] = first(r"firmware-version: (.+)", about)
        for short, value in offloads(output_of(host, "ethtool", "-k", nic)).items():
            facts[f"offload {short}"] = value
    return facts


def initial_window(routes: str) -> int | None:
    """From `ip route show`: segments that a connection may send at once; the least, where routes differ.

    Linux's own is 10 (RFC 6928, TCP_INIT_CWND) for a route that says nothing; null without any route.
    """
    lines = routes.splitlines()
    return min((int(first(r"\binitcwnd (\d+)", line) or INITIAL_WINDOW) for line in lines), default=None)


def offloads(features: str) -> dict[str, str | None]:
    """From `ethtool -k`: short name -> on or off; null where the NIC does not say.

    ethtool says that tso as a whole is on where any of its parts is, and a kernel may leave a part on when it turns the
    others off (accecn, without scatter-gather). So tso here is tso over IPv4, where ethtool says that.
    """
    states = {short: first(rf"^{name}: (on|off)", features) for short, name in OFFLOADS.items()}
    return states | {"tso": first(r"^\s*tx-tcp-segmentation: (on|off)", features) or states["tso"]}


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
