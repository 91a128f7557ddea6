"""What is set on a host itself: addresses, routes, TCP's settings, the NIC's offloads. Each is applied and then read back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from twinbed.contracts.bed import Applied
from twinbed.contracts.host import Host
from twinbed.contracts.host_settings import OFFLOADS, HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError, HostLost, ProgramFailed
from twinbed.links import bridge, coalescing, device, shaping
from twinbed.links.layout import Nic
from twinbed.model.json import loads
from twinbed.model.topology import Link

H = TypeVar("H")
T = TypeVar("T")
CARRIER_LIMIT_S = 30.0
ANSWER_LIMIT_S = 30.0
_SIDE_BY_SIDE = 16
"""How many hosts are brought up at a time. With more, each takes longer, and none is ready sooner."""
FORWARDING = "/proc/sys/net/ipv4/ip_forward"
READ_BACK = {
    "congestion_control": "net/ipv4/tcp_congestion_control",
    "autocorking": "net/ipv4/tcp_autocorking",
    "receive_buffer": "net/ipv4/tcp_rmem",
    "send_buffer": "net/ipv4/tcp_wmem",
}
"""Kernel settings (name -> path below /proc/sys) that are recorded whether or not they are set."""


CONGESTION_CONTROLS = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def quieten(host: AgentHost) -> None:
    """IPv6 off: its neighbour discovery would be traffic of the host's own."""
    for setting in bridge.QUIET:
        name, _, value = setting.partition("=")
        host.write("/proc/sys/" + name.replace(".", "/"), value.encode())


def configure(host: AgentHost, nics: Sequence[Nic], link: Link, settings: HostSettings) -> None:
    """Addresses, TCP settings, offloads; ends when every NIC has a carrier, or after the limit."""
    quieten(host)
    addresses = [bridge.address(nic, link.mtu, up=host.nic(nic.device).up is True) for nic in nics]
    try:
        host.run(["ip", "-batch", "-"], stdin="".join(addresses).encode())
    except ProgramFailed as error:
        if "mtu" not in str(error):
            raise
        raise HostError(f"{error}\n    mtu {link.mtu} is asked for: a smaller one, or another NIC") from None
    set_sysctls(host, settings)
    for nic in nics:
        set_offloads(host, nic.device, settings)
        coalescing.set_coalescing(host, nic.device, settings)
        if plan := shaping.plan(nic.device, link.at("hosts")):
            host.run(["tc", "-batch", "-"], stdin=plan.encode())
    for nic in nics:
        until_carrier(host, nic.device)


def applied(host: AgentHost, nics: Sequence[Nic], link: Link, settings: HostSettings) -> list[Applied]:
    """What ``configure`` set, read back."""
    result = applied_sysctls(host, settings)
    for nic in nics:
        result += _named(nic, nics, applied_address(host, nic.device, nic.address, nic.mac, link.mtu))
        result += _named(nic, nics, applied_offloads(host, nic.device, settings))
        result += _named(nic, nics, coalescing.applied_coalescing(host, nic.device, settings))
        if shaping.plan(nic.device, link.at("hosts")):
            result += [replace(item, subject=host.name) for item in applied_shaping(host, nic.device, link.at("hosts"))]
    return result


def _named(nic: Nic, nics: Sequence[Nic], items: list[Applied]) -> list[Applied]:
    """The subject, with the device's name where a host has more than one."""
    if len(nics) == 1:
        return items
    return [replace(item, setting=f"{nic.device}.{item.setting}") for item in items]


def set_sysctls(host: AgentHost, settings: HostSettings) -> None:
    """Raises HostError, which names what was to be written, and for congestion control what there is."""
    for path, value in settings.sysctls().items():
        try:
            host.write(f"/proc/sys/{path}", value.encode())
        except HostLost:
            raise
        except HostError as error:
            there = ""
            if path == READ_BACK["congestion_control"]:
                known = host.read(CONGESTION_CONTROLS).decode(errors="replace").split()
                there = f"; its kernel has {', '.join(known)}"
            raise HostError(f"{error}: it was to be {value!r}{there}") from None


def applied_sysctls(host: AgentHost, settings: HostSettings) -> list[Applied]:
    asked = settings.sysctls()
    return [
        Applied(
            host.name,
            name,
            asked.get(path),
            host.read(f"/proc/sys/{path}").decode(errors="replace").strip(),
            f"/proc/sys/{path}",
        )
        for name, path in READ_BACK.items()
    ]


def set_offloads(host: AgentHost, nic: str, settings: HostSettings) -> None:
    """Raises HostError, which names what the NIC's driver does not let us change."""
    asked = settings.offloads()
    if not asked:
        return
    done = host.run(["ethtool", "-K", nic, *(word for pair in asked.items() for word in pair)], check=False)
    if done.code == 0:
        return
    there = host.nic(nic)
    refused = [name for name, value in asked.items() if there.offloads[name] != value]
    if not refused:
        raise ProgramFailed(host.name, ("ethtool", "-K", nic), done.why, done.stderr)
    raise HostError(
        f"{host.name}: {nic} cannot have {', '.join(f'{name} {asked[name]}' for name in refused)}: its driver"
        f" {there.driver or 'of no name'} says `{done.stderr.decode(errors='replace').strip()}`;"
        f" leave {', '.join(refused)} as it is, or choose another NIC"
    )


def applied_offloads(host: AgentHost, nic: str, settings: HostSettings) -> list[Applied]:
    found, asked, source = host.nic(nic).offloads, settings.offloads(), f"ETHTOOL_GFEATURES of {nic}"
    return [Applied(host.name, f"offload.{name}", asked.get(name), found[name], source) for name in OFFLOADS]


def applied_address(host: AgentHost, nic: str, address: str, mac: str | None, mtu: int) -> list[Applied]:
    there, source = host.nic(nic), f"RTM_GETLINK of {nic}"
    found = [each for each in there.addresses if ":" not in each]
    return [
        Applied(host.name, "address", address, found[0] if len(found) == 1 else found, f"RTM_GETADDR of {nic}"),
        Applied(host.name, "mac", mac, there.mac, source),
        Applied(host.name, "mtu", mtu, there.mtu, source),
        Applied(host.name, "up", True, there.up, source),
        Applied(host.name, "carrier", True, there.carrier, source),
    ]


def applied_shaping(host: AgentHost, nic: str, link: Link) -> list[Applied]:
    """What ``shaping.plan`` put on a device."""
    ask_qdiscs, ask_classes = shaping.questions(nic)
    qdiscs, classes = host.run(ask_qdiscs).stdout, host.run(ask_classes).text
    with understood(host):
        return shaping.applied(nic, link, qdiscs, classes)


def set_routes(host: AgentHost, routes: Sequence[tuple[str, str]], *, forwards: bool) -> None:
    if forwards:
        host.write(FORWARDING, b"1")
    if routes:
        host.run(["ip", "-batch", "-"], stdin="".join(f"route add {to} via {via}\n" for to, via in routes).encode())


def applied_routes(host: AgentHost, routes: Sequence[tuple[str, str]], *, forwards: bool) -> list[Applied]:
    result = []
    if routes:
        ask = ("ip", "-j", "route", "show")
        listing = host.run(ask).stdout
        with understood(host):
            gateways = {entry["dst"]: entry.get("gateway") for entry in loads(listing or b"[]")}
        result = [Applied(host.name, f"route.{to}", via, gateways.get(to), " ".join(ask)) for to, via in routes]
    if forwards:
        result.append(Applied(host.name, "forwarding", "1", host.read(FORWARDING).decode(errors="replace").strip(), FORWARDING))
    return result


def until_carrier(host: AgentHost, nic: str) -> None:
    """Wait for a carrier, or until the limit. Whether there is one then is read back."""
    deadline = time.monotonic() + CARRIER_LIMIT_S
    while host.read(f"/sys/class/net/{nic}/carrier") != b"1\n" and time.monotonic() < deadline:
        time.sleep(0.01)


def until_answered(host: AgentHost, address: str) -> None:
    """Wait until another host's TCP answers, or until the limit. Whoever needs it after that says that it does not.

    An emulated machine that is busy may take longer to answer by ARP than the kernel of the one that asks waits."""
    host.reaches(address, ANSWER_LIMIT_S)


def devices_of(host: AgentHost) -> tuple[device.Device, ...]:
    listing = host.run(device.SHOW).stdout
    with understood(host):
        return device.parse(listing)


@contextlib.contextmanager
def understood(host: Host) -> Iterator[None]:
    """A run fails where the output of a host's tools cannot be read."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{host.name}: {error}") from error


def on_all(hosts: Sequence[H], what: Callable[[H], T]) -> list[T]:
    """Call ``what(host)`` for hosts side by side, some at a time; results in the hosts' order, the first failure is raised."""
    with ThreadPoolExecutor(max_workers=max(1, min(len(hosts), _SIDE_BY_SIDE))) as pool:
        return list(pool.map(what, hosts))
