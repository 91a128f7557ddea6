"""What a host is made of, read from the host itself: a fact that cannot be had is null."""

from __future__ import annotations

import re
from typing import Any

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
OFFLOADS = {
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
}


def describe(host: AgentHost, nic: str | None) -> dict[str, Any]:
    """Kernel, CPUs, memory, TCP settings; of ``nic`` its driver and offloads."""
    facts: dict[str, Any] = {fact: _line(host, path) for fact, path in _FILES.items()}
    if facts["clock source"] == "tsc-early":
        facts["clock source"] = "tsc"  # the same clock, not yet confirmed by the kernel's own calibration
    cpus = _line(host, "/proc/cpuinfo", whole=True) or ""
    facts["cpu"] = _first(r"model name\s*: (.*)", cpus)
    facts["cpus"] = len(re.findall(r"^processor\s*:", cpus, re.MULTILINE)) or None
    memory = _first(r"MemTotal:\s+(\d+) kB", _line(host, "/proc/meminfo", whole=True) or "")
    facts["memory bytes"] = int(memory) * 1024 if memory else None
    if nic:
        about = _said(host, ("ethtool", "-i", nic))
        facts["NIC driver"] = _first(r"driver: (.*)", about)
        facts["NIC firmware"] = _first(r"firmware-version: (.+)", about)
        for short, value in offloads(_said(host, ("ethtool", "-k", nic))).items():
            facts[f"offload {short}"] = value
    return facts


def offloads(features: str) -> dict[str, str | None]:
    """From `ethtool -k`: short name -> on or off; null where the NIC does not say.

    What ethtool says of tso as a whole is on where any of its parts is, and a kernel may have parts that it does not turn off
    with the others (accecn, without scatter-gather). So tso is what tso over IPv4 is, where ethtool says that.
    """
    found = {short: _first(rf"^{name}: (on|off)", features) for short, name in OFFLOADS.items()}
    return found | {"tso": _first(r"^\s*tx-tcp-segmentation: (on|off)", features) or found["tso"]}


def _line(host: AgentHost, path: str, *, whole: bool = False) -> str | None:
    try:
        text = host.read(path).decode(errors="replace").strip()
    except HostError:
        return None
    return text if whole else " ".join(text.split())


def _said(host: AgentHost, argv: tuple[str, ...]) -> str:
    try:
        return host.run(argv, check=False).text
    except HostError:
        return ""


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() or None if found else None
