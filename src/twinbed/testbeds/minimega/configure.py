"""The network of a guest, set and read back by plain ``ip`` (iproute2's or busybox's), /proc and /sys.

A guest of minimega's has what its image has: ethtool is needed only where an offload is asked for.
"""

from __future__ import annotations

import contextlib
import re
import time

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.passport import content
from twinbed.links.bridge import QUIET
from twinbed.links.network import CARRIER_LIMIT_S, READ_BACK, applied_offloads, set_sysctls

_SYSCTLS = "/proc/sys/"
_STEP_S = 0.02
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
    deadline = time.monotonic() + CARRIER_LIMIT_S
    while content(host, f"{_NICS}/{device}/carrier") != "1" and time.monotonic() < deadline:
        time.sleep(_STEP_S)


def _quiet() -> dict[str, str]:
    """What keeps a NIC from sending anything of its own: file -> content."""
    settings = (setting.partition("=") for setting in QUIET)
    return {_SYSCTLS + name.replace(".", "/"): value for name, _, value in settings}


def applied(host: AgentHost, device: str, address: str, mac: str, mtu: int, settings: HostSettings) -> list[Applied]:
    nic = f"{_NICS}/{device}"
    ask = ("ip", "addr", "show", "dev", device)
    addresses = re.findall(r"^\s*inet (\S+)", host.run(ask).text, re.MULTILINE)
    flags, size = content(host, f"{nic}/flags"), content(host, f"{nic}/mtu")
    result = [
        Applied(host.name, "address", address, addresses[0] if len(addresses) == 1 else addresses, " ".join(ask)),
        Applied(host.name, "mac", mac, content(host, f"{nic}/address"), f"{nic}/address"),
        Applied(host.name, "mtu", mtu, int(size) if size else None, f"{nic}/mtu"),
        Applied(host.name, "up", True, bool(int(flags, 16) & 1) if flags else None, f"{nic}/flags"),
        Applied(host.name, "carrier", True, content(host, f"{nic}/carrier") == "1", f"{nic}/carrier"),
    ]
    result += [Applied(host.name, path.removeprefix(_SYSCTLS), None, content(host, path), path) for path in _quiet()]
    sysctls = settings.sysctls()
    for name, path in READ_BACK.items():
        result.append(Applied(host.name, name, sysctls.get(path), content(host, f"/proc/sys/{path}"), f"/proc/sys/{path}"))
    return result + applied_offloads(host, device, settings)
