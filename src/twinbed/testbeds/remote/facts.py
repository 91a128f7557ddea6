"""Facts of a leased host (hardware, NIC, CPUs, memory nodes, system, its own tools), and its multithreading.

Simultaneous multithreading (hyperthreading) is set if the host allows, read back, and put back with the lease. Source:
Documentation/ABI/testing/sysfs-devices-system-cpu of Linux (smt/control).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinbed.contracts.bed import Applied, Fact
from twinbed.contracts.host_settings import OnOff
from twinbed.hosts.agent import AgentHost, parse_cpus
from twinbed.hosts.error import HostError
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
    """Return all facts; an unknown fact is null."""
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
    """Return the first line with a number that each tool printed; null for a tool that is missing."""
    sections = dict(re.findall(r"^== (.*)\n((?:(?!== ).*\n)*)", text, re.MULTILINE))
    return {f"{tool.split()[0]} version": first(r"^((?!.*not found).*\d.*)$", sections.get(tool, "")) for tool in _TOOLS}


def boot(host: AgentHost) -> str | None:
    """Return the id of the running kernel's boot."""
    return content(host, "/proc/sys/kernel/random/boot_id")


def carrier_changes(host: AgentHost, nic: str) -> int | None:
    """Return how often the link has come and gone since the NIC appeared."""
    text = content(host, CARRIER.format(nic))
    return int(text) if text else None


def _virtual(host: AgentHost) -> bool | None:
    """Return whether the CPU reports a hypervisor; None if it reports no flags."""
    flags = first(r"^flags\s*: (.*)", content(host, "/proc/cpuinfo") or "")
    return None if flags is None else "hypervisor" in flags.split()


def _nodes(online: str | None) -> int | None:
    return len(parse_cpus(online)) if online else None


CONTROL = "/sys/devices/system/cpu/smt/control"


def set_threads(lease: Lease, asked: OnOff | None) -> Sequence[Applied]:
    """Set multithreading and read it back. Raises HostError for a host whose CPUs or firmware leave no choice."""
    if asked is None:
        return []
    host = lease.host
    state = content(host, CONTROL)  # on, off, forceoff, notsupported or notimplemented; None without the file
    if state not in ("on", "off"):
        raise HostError(
            f"{host.name}: simultaneous multithreading cannot be set to {asked}: {CONTROL} is {state or 'missing'}",
            advice="leave smt out, or set it in the host's firmware",
        )
    if state != asked:
        lease.undo_file(CONTROL, state)
        host.write(CONTROL, asked.encode())
    return [Applied(host.name, "smt", asked, content(host, CONTROL), CONTROL)]
