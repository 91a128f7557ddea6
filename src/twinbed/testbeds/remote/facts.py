"""What a leased host is: hardware, NIC, CPUs, memory nodes, system, and its own tools where they are used."""

from __future__ import annotations

import re

from twinbed.contracts.bed import Fact
from twinbed.hosts.agent import AgentHost, parse_cpus
from twinbed.hosts.lease import Lease
from twinbed.hosts.passport import content, describe, first, output_of

_FILES = {
    "vendor": "/sys/class/dmi/id/sys_vendor",
    "product": "/sys/class/dmi/id/product_name",
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "hypervisor": "/sys/hypervisor/type",
}
_TOOLS = (
    *("ab -V", "ethtool --version", "ip -V", "iperf3 --version", "irtt version", "nginx -v", "openssl version"),
    *("stress-ng --version", "tc -V", "tcpdump --version", "wrk -v"),
)
_VERSIONS = 'for tool in "$@"; do echo "== $tool"; $tool 2>&1 </dev/null; done; exit 0'
CARRIER = "/sys/class/net/{}/carrier_changes"


def facts(lease: Lease, nic: str, *, own_tools: bool) -> dict[str, Fact]:
    """A fact that cannot be had is null."""
    host = lease.host
    facts = describe(host, nic)
    facts |= {name: content(host, path) for name, path in _FILES.items()}
    link = output_of(host, "ethtool", nic)
    facts |= {
        "NIC": nic,
        "NIC bus": host.nic(nic).bus,
        "NIC speed": first(r"^\s*Speed: (\d.*)", link),
        "NIC duplex": first(r"^\s*Duplex: (Full|Half)", link),
        "SMT": {"1": "on", "0": "off", None: None}.get(content(host, "/sys/devices/system/cpu/smt/active")),
        "NUMA nodes": _nodes(content(host, "/sys/devices/system/node/online")),
        "virtual": _virtual(host),
        "system": lease.preamble.get("os") or None,
        "sshd": lease.preamble.get("sshd") or None,
        "tools": "the host's own" if own_tools else "the image's",
    }
    if own_tools:
        facts |= versions(output_of(host, "sh", "-c", _VERSIONS, "sh", *_TOOLS))
    return facts


def versions(text: str) -> dict[str, str | None]:
    """Tool -> the first line with a number that it printed; null where it is not there."""
    sections = dict(re.findall(r"^== (.*)\n((?:(?!== ).*\n)*)", text, re.MULTILINE))
    return {f"{tool.split()[0]} version": first(r"^((?!.*not found).*\d.*)$", sections.get(tool, "")) for tool in _TOOLS}


def boot(host: AgentHost) -> str | None:
    """Identifies the running kernel."""
    return content(host, "/proc/sys/kernel/random/boot_id")


def carrier_changes(host: AgentHost, nic: str) -> int | None:
    """How often the link came and went since the NIC has been there."""
    text = content(host, CARRIER.format(nic))
    return int(text) if text else None


def _virtual(host: AgentHost) -> bool | None:
    """Whether the CPU says that a hypervisor is below it."""
    flags = first(r"^flags\s*: (.*)", content(host, "/proc/cpuinfo") or "")
    return None if flags is None else "hypervisor" in flags.split()


def _nodes(online: str | None) -> int | None:
    return len(parse_cpus(online)) if online else None
