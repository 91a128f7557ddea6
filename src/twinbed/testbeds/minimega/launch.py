"""Guests: described with ``vm config``, launched, started, awaited, pinned to CPUs and read back from ``vm info``.

QEMU's threads are pinned on the guest's node, by the process id of `vm info`. `optimize affinity` of minimega is not used. It
gives taskset the index of a CPU as a mask: guests get wrong CPUs, some shared, and CPU 0 is refused (recorded from 3.1.0).
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import share_cpus
from twinbed.hosts.agent import cpus_allowed, parse_cpus
from twinbed.hosts.error import HostError, LimitExceeded
from twinbed.hosts.passport import cores_first
from twinbed.links.layout import layout
from twinbed.model.caution import Caution, Kind
from twinbed.model.json import integer
from twinbed.model.topology import Topology
from twinbed.testbeds.minimega.control import Control
from twinbed.testbeds.minimega.head import Head
from twinbed.testbeds.minimega.host import PORT
from twinbed.testbeds.minimega.machine import SOURCE, Machine, machines, not_failed
from twinbed.testbeds.minimega.settings import MinimegaSettings
from twinbed.testbeds.minimega.socket import CommandSocket, MinimegaError

BOOT_LIMIT_S = 120.0
BOOT_LIMIT_EACH_S = 30.0
"""Added for each guest: without hardware virtualisation guests boot one after another."""
_STEP_S = 0.2
_PREPROCESSED = ("file:", "http://", "https://", "tar:")
"""minimega replaces such a path by the file's place on the node."""
_MALFORMED_NETSPEC = "malformed netspec"
"""The error of minimega 3.1 for a NIC model that its QEMU lacks; 3.0 takes the model for a network's name."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A guest as the study asks for it."""

    name: str
    address: str
    """IPv4 with prefix length."""
    mac: str
    card: str | None
    """QEMU's model of its NIC; None for a container."""
    node: str | None
    """Its node; None: minimega chooses one for all guests."""


def wanted(settings: MinimegaSettings, topology: Topology) -> list[Wanted]:
    """Return the guests of a topology, with the addresses of a lab's hosts, and nodes in place of machines."""
    plan = layout(topology)
    nodes = dict(zip(plan.machines, settings.nodes, strict=False))
    guests = []
    for client, server in topology.names():
        for name, card in ((client, settings.card("client")), (server, settings.card("server"))):
            (nic,) = plan.nics[name]
            guests.append(Wanted(name, nic.address, nic.mac, card if settings.type == "kvm" else None, nodes.get(nic.machine)))
    return guests


def describe(settings: MinimegaSettings, guest: Wanted, bridge: str | None) -> list[tuple[str, ...]]:
    """Return the words after ``vm config``."""
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
    """Launch and start the guests. ``nodes``: size of the mesh; with several, guests without a node share one."""
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
                advice = f"set nic to a card that minimega's QEMU has, such as e1000, not {guest.card}"
                raise MinimegaError(str(error), advice=advice) from None
        if guest.node is None and nodes > 1 and guest is not guests[0]:
            socket.ask("vm", "config", "colocate", guests[0].name)
        socket.ask("vm", "launch", settings.type, guest.name)
    machine_of = machines(socket)
    for guest in guests:
        if guest.name not in machine_of:
            raise HostError(f"minimega: {guest.name} was launched, but `vm info` does not list it")
        not_failed(machine_of[guest.name], guest.card)
    socket.ask("vm", "start", "all")


def await_clients(socket: CommandSocket, control: Control, guests: Sequence[Wanted]) -> dict[str, Machine]:
    """Wait until every guest runs and its client is connected. Raises HostError for a guest that failed, LimitExceeded with the
    missing guests and their states."""
    cards = {guest.name: guest.card for guest in guests}
    limit_s = BOOT_LIMIT_S + BOOT_LIMIT_EACH_S * len(guests)
    connected: frozenset[str] = frozenset()

    def all_ready(machine_of: Mapping[str, Machine]) -> bool:
        nonlocal connected
        for name, machine in machine_of.items():
            not_failed(machine, cards[name])
        connected = control.clients()
        return all(ready(machine) for machine in machine_of.values())

    def ready(machine: Machine) -> bool:
        return machine.state == "RUNNING" and machine.uuid.lower() in connected

    deadline = time.monotonic() + limit_s
    while not all_ready(machine_of := machines(socket)):
        if time.monotonic() > deadline:
            missing = [f"{name} ({machine.state})" for name, machine in machine_of.items() if not ready(machine)]
            raise LimitExceeded(
                f"minimega: after {limit_s:g} s no client (miniccc) is connected from {', '.join(missing)}",
                advice="start miniccc, of minimega's own release, in the guest's init",
            )
        time.sleep(_STEP_S)
    return machine_of


def applied(machine: Machine, settings: MinimegaSettings, guest: Wanted, bridge: str | None) -> list[Applied]:
    """Compare every setting with minimega's own report."""
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
            "disk": (None, machine.row["disks"]),  # may be the path of a snapshot
            "snapshot": (settings.disk is not None or None, data.get("Snapshot")),
            "kernel": (_path(settings.kernel), data.get("KernelPath")),
            "initrd": (_path(settings.initrd), data.get("InitrdPath")),
        }
    else:
        asked["filesystem"] = (_path(settings.filesystem), machine.row.get("filesystem"))
    return [Applied(guest.name, name, value, reported, SOURCE) for name, (value, reported) in asked.items()]


def _path(path: str | None) -> str | None:
    """Return the path that minimega must report; None if minimega puts the file elsewhere."""
    return path if path is not None and path.startswith("/") and not path.startswith(_PREPROCESSED) else None


def on_one_node(machine_of: Mapping[str, Machine]) -> Applied:
    nodes = sorted({machine.node for machine in machine_of.values()})
    if not nodes:
        raise HostError("minimega: no guests")
    return Applied("guests", "nodes", nodes[:1], nodes, SOURCE)


THREAD_STATUS = "/proc/PID/task/TID/status"
_SIBLINGS = "grep -sH . /sys/devices/system/cpu/cpu*/topology/thread_siblings_list; true"
_STATUS = "Cpus_allowed_list:"
_LOOKS = 20
"""How often, every 0.1 s, to check whether a process that minimega has just started has become QEMU."""


def pin(
    head: Head, machine_of: Mapping[str, Machine], guests: Sequence[Wanted], vcpus: int
) -> tuple[list[Applied], list[Caution]]:
    """Pin each guest of a node to as many CPUs as it has vCPUs, of the CPUs that programs there may use.

    Raises HostError if a process cannot be pinned or is not the guest's."""
    applied: list[Applied] = []
    cautions: list[Caution] = []
    for node in sorted({machine.node for machine in machine_of.values()}):
        machines = [machine_of[guest.name] for guest in guests if machine_of[guest.name].node == node]
        available = node_cpus(head, node)
        for machine, cpus in zip(machines, share_cpus([vcpus] * len(machines), available), strict=True):
            place(head, machine, cpus)
            applied.append(read_back(head, machine, cpus))
        if (needed := vcpus * len(machines)) > len(available):
            detail = f"{node}: {len(machines)} hosts need {needed} CPUs for themselves, and there are {len(available)}"
            cautions.append(Caution(Kind.SHARED_CPU, detail))
    return applied, cautions


def node_cpus(head: Head, node: str) -> tuple[int, ...]:
    """Return the CPUs of a node, one of each core first."""
    cpus = cpus_allowed(head.run(node, "cat /proc/self/status"))
    rows = re.findall(r"/cpu(\d+)/topology/thread_siblings_list:(\S+)$", head.run(node, _SIBLINGS), re.MULTILINE)
    siblings = {cpu: (cpu,) for cpu in cpus} | {int(cpu): parse_cpus(cores) for cpu, cores in rows}
    return cores_first(cpus, siblings)


def place(head: Head, machine: Machine, cpus: Sequence[int]) -> None:
    pid, folder = _pid(machine), f"{head.base}/{machine.data['ID']}/"
    asked = f"grep -caF {shlex.quote(folder)} /proc/{pid}/cmdline"
    looks = f"for _ in $(seq {_LOOKS}); do {asked} && break; sleep 0.1; done; true"
    if head.run(machine.node, looks).split()[-1:] in ([], ["0"]):
        raise HostError(
            f"{machine.name}: `vm info` gives process {pid} of {machine.node}, which is not the guest's QEMU: it has no file of"
            f" {folder}; minimega may run in another PID namespace",
            advice="set cpus: none",
        )
    head.run(machine.node, f"taskset --all-tasks --cpu-list --pid {','.join(map(str, cpus))} {pid}")


def read_back(head: Head, machine: Machine, cpus: Sequence[int]) -> Applied:
    """Read the CPUs of all threads back, as one set or, if threads differ, as several."""
    text = head.run(machine.node, f"cat /proc/{_pid(machine)}/task/*/status; true")
    threads = sorted({cpus_allowed(line) for line in text.splitlines() if line.startswith(_STATUS)})
    actual = threads[0] if len(threads) == 1 else tuple(threads) or None
    return Applied(machine.name, "cpus", tuple(cpus), actual, THREAD_STATUS)


def _pid(machine: Machine) -> int:
    try:
        return int(machine.row["pid"])
    except ValueError:
        raise HostError(f"{machine.name}: `vm info` must give a process id, not {machine.row['pid']!r}") from None
