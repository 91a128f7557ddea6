"""The network of a lab: switch, links, shapers and addresses, each applied and then read back.

Addresses are private to the lab: pair i has 10.77.i.1 (client) and 10.77.i.2 (server), /24.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.passport import offloads
from twinbed.links import bridge, device, shaping
from twinbed.model.hostsettings import OFFLOADS, HostSettings
from twinbed.model.plugin import Applied
from twinbed.model.topology import Link, Topology

H = TypeVar("H")
T = TypeVar("T")
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
CARRIER_LIMIT_S = 10.0


def addresses(topology: Topology) -> dict[str, str]:
    """Host -> IPv4 address."""
    return {
        host: f"10.77.{pair}.{role}" for pair, names in enumerate(topology.names()) for role, host in enumerate(names, start=1)
    }


def mac(address: str) -> str:
    """A locally administered hardware address that follows from the IPv4 address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def make_switch(machine: AgentHost) -> None:
    for setting in bridge.QUIET:
        name, _, value = setting.partition("=")
        machine.write("/proc/sys/" + name.replace(".", "/"), value.encode())
    machine.run(["ip", "-batch", "-"], stdin=bridge.switch().encode())


def shape(machine: AgentHost, hosts: Sequence[str], topology: Topology) -> None:
    if plan := "".join(shaping.plan(bridge.port(host), topology.link) for host in hosts):
        machine.run(["tc", "-batch", "-"], stdin=plan.encode())


def configure(host: AgentHost, address: str, topology: Topology, settings: HostSettings) -> None:
    """On the host itself: addresses, congestion control, offloads."""
    for setting in bridge.QUIET:
        name, _, value = setting.partition("=")
        host.write("/proc/sys/" + name.replace(".", "/"), value.encode())
    plan = bridge.address(f"{address}/24", topology.link.mtu, mac(address))
    host.run(["ip", "-batch", "-"], stdin=plan.encode())
    set_sysctls(host, settings)
    set_offloads(host, bridge.HOST_DEVICE, settings)
    until_carrier(host, bridge.HOST_DEVICE)


def set_sysctls(host: AgentHost, settings: HostSettings) -> None:
    for path, value in settings.sysctls().items():
        host.write(f"/proc/sys/{path}", value.encode())


def set_offloads(host: AgentHost, nic: str, settings: HostSettings) -> None:
    if asked := settings.offloads():
        host.run(["ethtool", "-K", nic, *(word for pair in asked.items() for word in pair)])


def until_carrier(host: AgentHost, nic: str) -> None:
    """Or until the limit: whether there is one then, is read back."""
    deadline = time.monotonic() + CARRIER_LIMIT_S
    while host.read(f"/sys/class/net/{nic}/carrier") != b"1\n" and time.monotonic() < deadline:
        time.sleep(0.01)


def applied_on_machine(machine: AgentHost, kinds: Mapping[str, str], topology: Topology) -> list[Applied]:
    """Read the switch, its ports (host -> kind of device) and their shapers back."""
    devices = devices_of(machine)
    result = bridge.applied_switch(devices)
    for host, kind in kinds.items():
        port = bridge.port(host)
        result += bridge.applied_port(host, topology.link.mtu, kind, devices)
        result += applied_shaping(machine, port, topology.link)
    return result


def applied_shaping(host: AgentHost, nic: str, link: Link) -> list[Applied]:
    """What ``shaping.plan`` put on a device."""
    ask_qdiscs, ask_classes = shaping.questions(nic)
    qdiscs, classes = host.run(ask_qdiscs).stdout, host.run(ask_classes).text
    with understood(host):
        return shaping.applied(nic, link, qdiscs, classes)


def applied_on_host(host: AgentHost, address: str, topology: Topology, settings: HostSettings) -> list[Applied]:
    source = " ".join(device.SHOW)
    found = next((d for d in devices_of(host) if d.name == bridge.HOST_DEVICE), None)
    result = [
        Applied(
            host.name, "address", f"{address}/24", found and found.addresses[0] if found and found.addresses else None, source
        ),
        Applied(host.name, "mac", mac(address), found and found.mac, source),
        Applied(host.name, "mtu", topology.link.mtu, found and found.mtu, source),
        Applied(host.name, "up", True, found and found.up, source),
        Applied(host.name, "carrier", True, found and found.carrier, source),
    ]
    return result + applied_sysctls(host, settings) + applied_offloads(host, bridge.HOST_DEVICE, settings)


def applied_sysctls(host: AgentHost, settings: HostSettings) -> list[Applied]:
    found = host.read(CONGESTION_CONTROL).decode().strip()
    return [Applied(host.name, "congestion_control", settings.congestion_control, found, CONGESTION_CONTROL)]


def applied_offloads(host: AgentHost, nic: str, settings: HostSettings) -> list[Applied]:
    ask = ("ethtool", "-k", nic)
    features, asked = offloads(host.run(ask).text), settings.offloads()
    return [Applied(host.name, f"offload.{name}", asked.get(name), features[name], " ".join(ask)) for name in OFFLOADS]


def devices_of(host: AgentHost) -> tuple[device.Device, ...]:
    said = host.run(device.SHOW).stdout
    with understood(host):
        return device.parse(said)


@contextlib.contextmanager
def understood(host: AgentHost) -> Iterator[None]:
    """A host whose tools say what cannot be read fails its run."""
    try:
        yield
    except ValueError as error:
        raise HostError(f"{host.name}: {error}") from error


def on_all(hosts: Sequence[H], what: Callable[[H], T]) -> list[T]:
    """Call ``what(host)`` for every host side by side; results in the hosts' order, the first failure is raised."""
    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
        return list(pool.map(what, hosts))
