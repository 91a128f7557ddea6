"""The NIC of a leased host's experiment link: chosen, saved, set and read back.

Everything that changes is entered into the lease's undo first: addresses and routes as `ip save` writes them, MTU, link state,
IPv6, offloads, TCP's settings, queueing disciplines. The NIC keeps its hardware address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.lease import Lease
from twinbed.hosts.nic import NicState
from twinbed.hosts.passport import content
from twinbed.links import network, shaping
from twinbed.links.device import Device
from twinbed.model.json import loads
from twinbed.model.topology import Link

_KINDS = frozenset({None, "veth"})
"""Kinds of devices that may hold a cable: a physical NIC has no kind. Bonds, VLANs and bridges must be named."""
_NO_DISCIPLINE_OF_ITS_OWN = "0:"
"""The handle of the queueing discipline that the kernel gives a device by itself."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A host's end of the experiment link. ``speed``: the NIC's, bit/s; None if it reports none."""

    nic: str
    address: IPv4Interface
    speed: int | None
    was_up: bool
    shaped: Link
    """The shaping of its egress, without a rate if the NIC has the link's rate."""


def chosen(lease: Lease, named: str | None, devices: Sequence[Device]) -> str:
    """Choose the NIC of the experiment link. Raises HostError if several could be it, or if it carries the SSH connection."""
    host = lease.host
    carries = _management(lease, devices)
    by_name = {device.name: device for device in devices}
    if named is not None:
        if named not in by_name:
            raise HostError(f"{host.name}: no NIC {named}: set nic to one of {_listed(devices)}")
        if named == carries:
            raise HostError(
                f"{host.name}: {named} carries the SSH connection, and a run changes its settings: set nic to another of"
                f" {_listed(devices)}"
            )
        return named
    able = candidates(devices, carries)
    if len(able) != 1 or carries is None:
        raise HostError(
            f"{host.name}: {len(able)} NICs could be the experiment link's"
            + ("" if carries else ", and sshd does not report which one the SSH connection uses")
            + f": set nic to one of {_listed(devices)}"
        )
    return able[0].name


def candidates(devices: Sequence[Device], carries: str | None) -> list[Device]:
    """Return the devices that could be the experiment link's NIC. ``carries``: the device of the SSH connection."""
    return [device for device in devices if device.kind in _KINDS and device.carrier and device.name not in ("lo", carries)]


def with_address(devices: Sequence[Device], address: str) -> str | None:
    """Return the device with an address (without prefix length); None if none has it."""
    return next((device.name for device in devices if address in {own.partition("/")[0] for own in device.addresses}), None)


def _management(lease: Lease, devices: Sequence[Device]) -> str | None:
    """Return the device that carries the SSH connection, by its address or by the route to the controller."""
    if lease.management is None:
        return None
    controller, ours = lease.management
    return with_address(devices, ours) or way(lease.host, controller)


def way(host: AgentHost, address: str) -> str | None:
    """Return the device by which packets to ``address`` leave; None if there is none."""
    output = host.run(["ip", "-j", "route", "get", address], check=False).stdout
    with network.understood(host):
        routes = loads(output or b"[]")
    return str(routes[0]["dev"]) if routes and "dev" in routes[0] else None


def _listed(devices: Sequence[Device]) -> str:
    shown = [
        f"{device.name} ({'carrier' if device.carrier else 'no carrier'}{''.join(f', {a}' for a in device.addresses)})"
        for device in devices
        if device.name != "lo"
    ]
    return "; ".join(shown) or "none"


def prepare(lease: Lease, nic: str, address: IPv4Interface, link: Link, settings: HostSettings) -> Experiment:
    """Read the NIC's state and enter all of it into the undo. Nothing changes yet."""
    host = lease.host
    device = next(known for known in network.devices_of(host) if known.name == nic)
    speed = _speed(host.run(["ethtool", nic]).text)
    shaped = _shaped(host.name, nic, link, speed)
    qdisc = _discipline(host, nic)
    if shaping.plan(nic, shaped) and qdisc != _NO_DISCIPLINE_OF_ITS_OWN:
        raise HostError(
            f"{host.name}: {nic} has a queueing discipline of its own ({qdisc}), which a run would replace",
            advice=f"on the host: tc qdisc del dev {nic} root",
        )
    if not device.up:
        lease.undo(["ip", "link", "set", nic, "down"])
    for family in ("-6", "-4"):
        routes = host.run(["ip", family, "route", "save", "table", "all", "type", "unicast", "dev", nic], check=False).stdout
        if routes:
            lease.undo(["ip", family, "route", "restore"], routes)
    addresses = host.run(["ip", "addr", "save", "dev", nic]).stdout
    lease.undo(["ip", "addr", "restore"], addresses)
    if (ipv6 := content(host, _ipv6(nic))) is not None:
        lease.undo_file(_ipv6(nic), ipv6)
    lease.undo(["ip", "link", "set", nic, "mtu", str(device.mtu)])
    lease.undo(["ip", "addr", "flush", "dev", nic])
    for path in settings.sysctls():
        with network.understood(host):
            lease.undo_file(f"/proc/sys/{path}", host.read(f"/proc/sys/{path}").decode("utf-8"))
    if settings.offloads():
        lease.undo(["ethtool", "-K", nic, *_features(host.nic(nic))])
    if settings.moderation() is not None and (back := network.undo_coalescing(host, nic)):
        lease.undo(back)
    if shaping.plan(nic, shaped):
        # A default discipline cannot be deleted, only its replacement.
        lease.undo(["tc", "qdisc", "del", "dev", nic, "root"])
        lease.undo(["tc", "qdisc", "replace", "dev", nic, "root", "pfifo"])
    return Experiment(nic, address, speed, device.up, shaped)


def configure(host: AgentHost, experiment: Experiment, link: Link, settings: HostSettings) -> None:
    """Set the NIC and wait for its carrier."""
    nic = experiment.nic
    # IPv6 would send its own packets on the link.
    if content(host, _ipv6(nic)) is not None:
        host.write(_ipv6(nic), b"1")
    plan = f"addr flush dev {nic}\nlink set {nic} mtu {link.mtu} up\naddr add {experiment.address} dev {nic}\n"
    host.run(["ip", "-batch", "-"], stdin=plan.encode())
    network.set_sysctls(host, settings)
    network.set_offloads(host, nic, settings)
    network.set_coalescing(host, nic, settings)
    if shape := shaping.plan(nic, experiment.shaped):
        host.run(["tc", "-batch", "-"], stdin=shape.encode())
    network.until_carrier(host, nic)


def applied(host: AgentHost, experiment: Experiment, link: Link, settings: HostSettings) -> list[Applied]:
    """Read back the settings that ``configure`` made."""
    nic = experiment.nic
    speed = _speed(host.run(["ethtool", nic]).text)
    result = network.applied_address(host, nic, str(experiment.address), None, link.mtu)
    result.append(Applied(host.name, "speed", link.rate if experiment.shaped.rate is None else None, speed, f"ethtool {nic}"))
    result += network.applied_sysctls(host, settings)
    result += network.applied_offloads(host, nic, settings)
    result += network.applied_coalescing(host, nic, settings)
    shaped = network.applied_shaping(host, nic, experiment.shaped)
    return result + [replace(item, subject=host.name) for item in shaped]


def _speed(text: str) -> int | None:
    """Read a NIC's speed, bit/s, from ethtool's output."""
    match = re.search(r"^\s*Speed: (\d+)Mb/s", text, re.MULTILINE)
    return int(match[1]) * 10**6 if match else None


def _shaped(host: str, nic: str, link: Link, speed: int | None) -> Link:
    if link.rate is not None and speed is not None and link.rate > speed:
        raise HostError(f"{host}: {nic} runs at {speed / 1e6:g} Mbit/s, which cannot carry {link.rate / 1e6:g} Mbit/s")
    return link.model_copy(update={"rate": None}) if link.rate == speed else link


def _discipline(host: AgentHost, nic: str) -> str:
    output = host.run(["tc", "-j", "qdisc", "show", "dev", nic]).stdout
    with network.understood(host):
        root: dict[str, str] = next((entry for entry in loads(output or b"[]") if entry.get("root")), {})
    handle = str(root.get("handle", _NO_DISCIPLINE_OF_ITS_OWN))
    return handle if handle == _NO_DISCIPLINE_OF_ITS_OWN else f"{root.get('kind')} {handle}"


def _features(nic: NicState) -> list[str]:
    """Return the arguments of `ethtool -K` that set the features to the values requested so far."""
    wanted = nic.wanted_features or {}
    return [word for name, asked in wanted.items() for word in (name, "on" if asked else "off")]


def _ipv6(nic: str) -> str:
    return f"/proc/sys/net/ipv6/conf/{nic}/disable_ipv6"
