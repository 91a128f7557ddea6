"""The network of a guest: set by plain ``ip`` (iproute2's or busybox's), /proc and /sys, and read back by its agent.

A guest has only the programs of its image. They are checked on all guests at once, since guests take long to come up. ethtool
is needed only if the study sets an offload.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.passport import content
from twinbed.links.bridge import QUIET
from twinbed.links.network import READ_BACK, applied_address, applied_offloads, set_sysctls, until_carrier
from twinbed.model.topology import Link

_LACKS = 'for program in "$@"; do command -v "$program" >/dev/null || echo "$program"; done'
_ALWAYS = frozenset({"ip", "stat"})
"""For the network and the free space."""
_TO_MEASURE_A_RATE = frozenset({"tc", "tcpdump"})


def needed(started: Collection[str], settings: HostSettings, link: Link) -> list[str]:
    """Return the sorted names of all programs that a guest needs. ``started``: programs that the run starts there."""
    rate = _TO_MEASURE_A_RATE if link.rate is not None else frozenset()
    return sorted({*started, *_ALWAYS, *rate, *({"ethtool"} if settings.offloads() else ())})


def lacking(host: AgentHost, programs: Sequence[str]) -> list[str]:
    """Return the programs that are not in the guest's search path."""
    return host.run(["sh", "-c", _LACKS, "sh", *programs]).text.split()


def refuse(lacks: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Raise HostError if a guest lacks programs. ``lacks``: each guest with its missing programs."""
    if missing := [f"{guest} has no {', '.join(programs)}" for guest, programs in lacks if programs]:
        raise HostError("; ".join(missing), advice="put these programs into the guests' image, in a folder of PATH")


_SYSCTLS = "/proc/sys/"
_NICS = "/sys/class/net"


def device_of(host: AgentHost, mac: str) -> str:
    """Find the guest's name for its NIC by the hardware address."""
    addresses = {entry.name: content(host, f"{_NICS}/{entry.name}/address") for entry in host.listdir(_NICS)}
    for name, address in addresses.items():
        if address is not None and address.lower() == mac.lower():
            return str(name)
    has = ", ".join(f"{name} ({address})" for name, address in addresses.items())
    raise HostError(
        f"{host.name}: no NIC has the address {mac}; it has {has}", advice="use a kernel with a driver for the card, or set nic"
    )


def configure(host: AgentHost, device: str, address: str, mtu: int, settings: HostSettings) -> None:
    """Set address, MTU, TCP's settings and offloads, and wait for the carrier."""
    for path, value in _quiet().items():
        if content(host, path) not in (None, value):  # a kernel without IPv6 is quiet already
            # A container may have a read-only /proc/sys: the values in force are read back and recorded.
            with contextlib.suppress(HostError):
                host.write(path, value.encode())
    host.run(["ip", "link", "set", "dev", "lo", "up"])
    host.run(["ip", "addr", "flush", "dev", device])
    host.run(["ip", "link", "set", "dev", device, "mtu", str(mtu)])
    host.run(["ip", "addr", "add", address, "dev", device])
    host.run(["ip", "link", "set", "dev", device, "up"])
    set_sysctls(host, settings)
    if asked := settings.offloads():
        host.run(["ethtool", "-K", device, *(word for pair in asked.items() for word in pair)])
    until_carrier(host, device)


def _quiet() -> dict[str, str]:
    """Return the files, with their content, that keep a NIC from sending packets by itself."""
    settings = (setting.partition("=") for setting in QUIET)
    return {_SYSCTLS + name.replace(".", "/"): value for name, _, value in settings}


def applied(host: AgentHost, device: str, address: str, mac: str, mtu: int, settings: HostSettings) -> list[Applied]:
    result = applied_address(host, device, address, mac, mtu)
    result += [Applied(host.name, path.removeprefix(_SYSCTLS), None, content(host, path), path) for path in _quiet()]
    sysctls = settings.sysctls()
    for name, path in READ_BACK.items():
        result.append(Applied(host.name, name, sysctls.get(path), content(host, f"/proc/sys/{path}"), f"/proc/sys/{path}"))
    return result + applied_offloads(host, device, settings)
