"""The network of a guest: set by plain ``ip`` (iproute2's or busybox's), /proc and /sys, and read back by its agent.

A guest of minimega's has what its image has: ethtool is needed only where an offload is asked for.
"""

from __future__ import annotations

import contextlib

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.passport import content
from twinbed.links.bridge import QUIET
from twinbed.links.network import READ_BACK, applied_address, applied_offloads, set_sysctls, until_carrier

_SYSCTLS = "/proc/sys/"
_NICS = "/sys/class/net"


def device_of(host: AgentHost, mac: str) -> str:
    """The guest's name for its NIC: found by its hardware address."""
    addresses = {entry.name: content(host, f"{_NICS}/{entry.name}/address") for entry in host.listdir(_NICS)}
    for name, address in addresses.items():
        if address is not None and address.lower() == mac.lower():
            return str(name)
    has = ", ".join(f"{name} ({address})" for name, address in addresses.items())
    raise HostError(f"{host.name}: no NIC has the address {mac}: it has {has}; does its kernel have a driver for the card?")


def configure(host: AgentHost, device: str, address: str, mtu: int, settings: HostSettings) -> None:
    """Sets address, MTU, TCP's settings and offloads; ends when there is a carrier, or after the limit."""
    for path, value in _quiet().items():
        if content(host, path) not in (None, value):  # a kernel without IPv6 is quiet already
            # A container may have a /proc/sys that cannot be written to: what is in force is read back and recorded.
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
    """What keeps a NIC from sending anything of its own: file -> content."""
    settings = (setting.partition("=") for setting in QUIET)
    return {_SYSCTLS + name.replace(".", "/"): value for name, _, value in settings}


def applied(host: AgentHost, device: str, address: str, mac: str, mtu: int, settings: HostSettings) -> list[Applied]:
    result = applied_address(host, device, address, mac, mtu)
    result += [Applied(host.name, path.removeprefix(_SYSCTLS), None, content(host, path), path) for path in _quiet()]
    sysctls = settings.sysctls()
    for name, path in READ_BACK.items():
        result.append(Applied(host.name, name, sysctls.get(path), content(host, f"/proc/sys/{path}"), f"/proc/sys/{path}"))
    return result + applied_offloads(host, device, settings)
