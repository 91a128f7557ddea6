"""Guests described with ``vm config``, launched, started, and waited for; what became of them is read back from ``vm info``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.bed import Applied
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.links.layout import layout
from twinbed.model.json import integer
from twinbed.model.topology import Topology
from twinbed.testbeds.minimega.control import Control
from twinbed.testbeds.minimega.host import PORT
from twinbed.testbeds.minimega.machine import SOURCE, Machine, machines, not_failed
from twinbed.testbeds.minimega.settings import MinimegaSettings
from twinbed.testbeds.minimega.socket import CommandSocket, MinimegaError

BOOT_LIMIT_S = 120.0
BOOT_LIMIT_EACH_S = 30.0
"""Added for each guest: without hardware virtualisation they boot in turns."""
_STEP_S = 0.2
_PREPROCESSED = ("file:", "http://", "https://", "tar:")
"""Paths that minimega replaces by where it has put the file."""
_MALFORMED_NETSPEC = "malformed netspec"
"""What minimega 3.1 says of a NIC's model that its QEMU has not; 3.0 takes it for a network's name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A guest as it is asked for."""

    name: str
    address: str
    """IPv4, with the length of the prefix."""
    mac: str
    card: str | None
    """QEMU's model of its NIC; a container has none."""
    node: str | None
    """The node that it must be on; None: minimega's choice, but all on one."""


def wanted(settings: MinimegaSettings, topology: Topology) -> list[Wanted]:
    """The guests that a topology wants, with the addresses that hosts of a lab would have, and nodes in the places of its
    machines."""
    plan = layout(topology)
    nodes = dict(zip(plan.machines, settings.nodes, strict=False))
    guests = []
    for client, server in topology.names():
        for name, card in ((client, settings.card("client")), (server, settings.card("server"))):
            (nic,) = plan.nics[name]
            guests.append(Wanted(name, nic.address, nic.mac, card if settings.type == "kvm" else None, nodes.get(nic.machine)))
    return guests


def describe(settings: MinimegaSettings, guest: Wanted, bridge: str | None) -> list[tuple[str, ...]]:
    """The words after ``vm config``."""
    netspec = ",".join(part for part in (bridge, settings.network, guest.mac, guest.card) if part)
    plan: list[tuple[str, ...]] = [("memory", str(settings.megabytes())), ("vcpus", str(settings.vcpus)), ("net", netspec)]
    for name in ("qemu", "cpu", "machine"):
        if settings.type == "kvm" and (value := getattr(settings, name)) is not None:
            plan.append((name, value))
    if settings.disk is not None:
        plan.append(("snapshot", "true"))  # nobody writes to the disk; before the disk, as minimega wants it
    for name, path in settings.files().items():
        plan.append(("disks" if name == "disk" else name, path))
    if settings.append is not None:
        plan.append(("append", *settings.append.split()))
    if guest.node is not None:
        plan.append(("schedule", guest.node))
    return plan


def launch(socket: CommandSocket, settings: MinimegaSettings, guests: Sequence[Wanted], bridge: str | None, nodes: int) -> None:
    """``nodes`` is how many the mesh has: with several, guests that may be on any are put on one."""
    if settings.type == "kvm" and settings.control != "cc":
        try:
            socket.ask("vm", "config", "virtio-ports", PORT)
        except MinimegaError:
            if settings.control == "virtio-serial":
                raise
    for guest in guests:
        for words in describe(settings, guest, bridge):
            try:
                socket.ask("vm", "config", *words)
            except MinimegaError as error:
                if guest.card is None or _MALFORMED_NETSPEC not in str(error):
                    raise
                raise MinimegaError(
                    f"{error}: is nic {guest.card!r} a card that this minimega's QEMU has? Names are QEMU's, such as 'e1000'"
                ) from None
        if guest.node is None and nodes > 1 and guest is not guests[0]:
            socket.ask("vm", "config", "colocate", guests[0].name)
        socket.ask("vm", "launch", settings.type, guest.name)
    machine_of = machines(socket)
    for guest in guests:
        if guest.name not in machine_of:
            raise HostError(f"minimega: {guest.name} was launched, but is not in `vm info`")
        not_failed(machine_of[guest.name], guest.card)
    socket.ask("vm", "start", "all")


def await_clients(socket: CommandSocket, control: Control, guests: Sequence[Wanted]) -> dict[str, Machine]:
    """Waits until every guest runs and its client is connected. Raises HostError for one that failed, LimitExceeded with those
    that are missing and what minimega says of them."""
    cards = {guest.name: guest.card for guest in guests}
    limit_s = BOOT_LIMIT_S + BOOT_LIMIT_EACH_S * len(guests)
    connected: frozenset[str] = frozenset()

    def there(machine_of: Mapping[str, Machine]) -> bool:
        nonlocal connected
        for name, machine in machine_of.items():
            not_failed(machine, cards[name])
        connected = control.clients()
        return all(ready(machine) for machine in machine_of.values())

    def ready(machine: Machine) -> bool:
        return machine.state == "RUNNING" and machine.uuid.lower() in connected

    deadline = time.monotonic() + limit_s
    while not there(machine_of := machines(socket)):
        if time.monotonic() > deadline:
            missing = [f"{name} ({machine.state})" for name, machine in machine_of.items() if not ready(machine)]
            raise LimitExceeded(
                f"minimega: after {limit_s:g} s no client (miniccc) is connected from {', '.join(missing)};"
                " is miniccc in the guest, started by its init, and of minimega's own release?"
            )
        time.sleep(_STEP_S)
    return machine_of


def applied(machine: Machine, settings: MinimegaSettings, guest: Wanted, bridge: str | None) -> list[Applied]:
    """Every setting, as minimega itself has it."""
    network, data = machine.network, machine.data
    asked: dict[str, tuple[object, object]] = {
        "state": ("RUNNING", machine.state),
        "type": (settings.type, machine.row["type"]),
        "vcpus": (settings.vcpus, data.get("VCPUs")),
        "memory": (settings.megabytes() * 2**20, integer(data["Memory"]) * 2**20 if "Memory" in data else None),
        "network": (settings.network, network.get("Alias")),
        "vlan": (settings.vlan, network.get("VLAN")),
        "bridge": (bridge, network.get("Bridge")),
        "tap": (None, network.get("Tap")),
        "mac at the tap": (guest.mac, network.get("MAC")),
        "node": (guest.node, machine.node),
    }
    if settings.type == "kvm":
        asked |= {
            "nic": (guest.card, network.get("Driver")),
            "qemu": (settings.qemu, data.get("QemuPath")),
            "cpu": (settings.cpu, data.get("CPU")),
            "machine": (settings.machine, data.get("Machine")),
            "append": (settings.append and settings.append.split(), data.get("Append")),
            "disk": (None, machine.row["disks"]),  # of a snapshot it may be the snapshot's own path
            "snapshot": (settings.disk is not None or None, data.get("Snapshot")),
            "kernel": (_path(settings.kernel), data.get("KernelPath")),
            "initrd": (_path(settings.initrd), data.get("InitrdPath")),
        }
    else:
        asked["filesystem"] = (_path(settings.filesystem), machine.row.get("filesystem"))
    return [Applied(guest.name, name, want, value, SOURCE) for name, (want, value) in asked.items()]


def _path(path: str | None) -> str | None:
    """The path that minimega must have; None where it puts the file elsewhere itself."""
    return path if path is not None and path.startswith("/") and not path.startswith(_PREPROCESSED) else None


def on_one_node(machine_of: Mapping[str, Machine]) -> Applied:
    nodes = sorted({machine.node for machine in machine_of.values()})
    if not nodes:
        raise HostError("minimega: no guests")
    return Applied("guests", "nodes", nodes[:1], nodes, SOURCE)
