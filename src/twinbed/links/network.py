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
from twinbed.model.hostsettings import HostSettings
from twinbed.model.plugin import Applied
from twinbed.model.topology import Topology

H = TypeVar("H")
T = TypeVar("T")
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
CARRIER = f"/sys/class/net/{bridge.HOST_DEVICE}/carrier"
CARRIER_LIMIT_S = 10.0
OFFLOAD_FEATURES = ("sg", "tso", "gso", "gro")


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
    if settings.congestion_control:
        host.write(CONGESTION_CONTROL, settings.congestion_control.encode())
    if settings.offload:
        words = (word for name in OFFLOAD_FEATURES for word in (name, settings.offload))
        host.run(["ethtool", "-K", bridge.HOST_DEVICE, *words])
    _until_carrier(host)


def _until_carrier(host: AgentHost) -> None:
    """Or until the limit: whether there is one then, ``applied_on_host`` reads back."""
    deadline = time.monotonic() + CARRIER_LIMIT_S
    while host.read(CARRIER) != b"1\n" and time.monotonic() < deadline:
        time.sleep(0.01)


def applied_on_machine(machine: AgentHost, kinds: Mapping[str, str], topology: Topology) -> list[Applied]:
    """Read the switch, its ports (host -> kind of device) and their shapers back."""
    devices = _devices(machine)
    result = bridge.applied_switch(devices)
    for host, kind in kinds.items():
        port = bridge.port(host)
        result += bridge.applied_port(host, topology.link.mtu, kind, devices)
        ask_qdiscs, ask_classes = shaping.questions(port)
        qdiscs, classes = machine.run(ask_qdiscs).stdout, machine.run(ask_classes).text
        with _understood(machine):
            result += shaping.applied(port, topology.link, qdiscs, classes)
    return result


def applied_on_host(host: AgentHost, address: str, topology: Topology, settings: HostSettings) -> list[Applied]:
    source = " ".join(device.SHOW)
    found = next((d for d in _devices(host) if d.name == bridge.HOST_DEVICE), None)
    result = [
        Applied(
            host.name, "address", f"{address}/24", found and found.addresses[0] if found and found.addresses else None, source
        ),
        Applied(host.name, "mac", mac(address), found and found.mac, source),
        Applied(host.name, "mtu", topology.link.mtu, found and found.mtu, source),
        Applied(host.name, "up", True, found and found.up, source),
        Applied(host.name, "carrier", True, found and found.carrier, source),
    ]
    congestion_control = host.read(CONGESTION_CONTROL).decode().strip()
    result.append(Applied(host.name, "congestion_control", settings.congestion_control, congestion_control, CONGESTION_CONTROL))
    ask = ("ethtool", "-k", bridge.HOST_DEVICE)
    features = offloads(host.run(ask).text)
    return result + [
        Applied(host.name, f"offload.{name}", settings.offload, features[name], " ".join(ask)) for name in OFFLOAD_FEATURES
    ]


def _devices(host: AgentHost) -> tuple[device.Device, ...]:
    said = host.run(device.SHOW).stdout
    with _understood(host):
        return device.parse(said)


@contextlib.contextmanager
def _understood(host: AgentHost) -> Iterator[None]:
    """A host whose tools say what cannot be read fails its run."""
    try:
        yield
    except ValueError as error:
        raise HostError(f"{host.name}: {error}") from error


def on_all(hosts: Sequence[H], what: Callable[[H], T]) -> list[T]:
    """Call ``what(host)`` for every host side by side; results in the hosts' order, the first failure is raised."""
    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
        return list(pool.map(what, hosts))
