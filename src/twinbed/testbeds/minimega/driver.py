"""Puts up a testbed in a running minimega: a namespace of its own, guests, shaping, tunnels; all read back; then cleared."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence

from twinbed.contracts.bed import Applied, Bed, Fact, Facts
from twinbed.contracts.check import Check
from twinbed.contracts.driver import Driver
from twinbed.contracts.place import MACHINE, Target
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.passport import content, describe
from twinbed.links import network
from twinbed.model.caution import Caution, Kind
from twinbed.model.topology import Topology
from twinbed.testbeds.minimega import configure, launch, needs, pinning, shaping, space
from twinbed.testbeds.minimega.capture import captured
from twinbed.testbeds.minimega.control import Control
from twinbed.testbeds.minimega.head import Head, open_head
from twinbed.testbeds.minimega.host import Entered, entered
from twinbed.testbeds.minimega.launch import Wanted
from twinbed.testbeds.minimega.machine import Machine, machines
from twinbed.testbeds.minimega.settings import MinimegaSettings
from twinbed.testbeds.minimega.socket import CommandSocket
from twinbed.testbeds.minimega.space import Leftover, Space, own_space

_CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"


class Minimega(Driver[MinimegaSettings]):
    name = "minimega"
    params = MinimegaSettings
    summary = "virtual machines or containers of a running minimega cluster, through its command socket"
    also = ("cluster", "phenix", "miniccc")

    def check(self, params: MinimegaSettings) -> Sequence[Check]:
        with contextlib.ExitStack() as stack:
            where = f"{params.base}/minimega" + (f" on {params.head}" if params.head else "")
            try:
                head = stack.enter_context(open_head(params.base, params.head))
                version = head.socket.ask("version", limit_s=10.0).first.text
            except HostError as error:
                return [
                    Check("minimega", False, str(error), f"start minimega, or set base or head; twinbed needs to read {where}")
                ]
            checks = [Check("minimega", True, version), _namespace(head, params.namespace)]
            for name, path in params.files().items():
                if path.startswith("/") and name != "filesystem":
                    digest = head.digest(path)
                    checks.append(
                        Check(
                            f"{name} {path}",
                            digest is not None,
                            digest or "cannot be read on the head node",
                            f"put it at {path}",
                        )
                    )
            return checks

    def leftovers(self) -> Sequence[Leftover]:
        return space.leftovers()

    @contextlib.contextmanager
    def up(self, params: MinimegaSettings, topology: Topology, site: Site) -> Iterator[Bed]:
        shaping.refuse(shaping.refusals(topology, params.nodes))
        guests = launch.wanted(params, topology)
        with contextlib.ExitStack() as stack:
            head = stack.enter_context(open_head(params.base, params.head))
            own = stack.enter_context(own_space(head, params.namespace))
            control = Control(own.socket)
            own.put(own.probe, site.probe.read_bytes())
            mesh = space.nodes(head.socket)
            bridge, applied = _network(own, params, topology)
            launch.launch(own.socket, params, guests, bridge, mesh)
            machine_of = launch.await_clients(own.socket, control, guests)
            for guest in guests:
                for words in shaping.commands(topology.link):
                    own.socket.ask("qos", "add", guest.name, "0", *words)
            cautions: list[Caution] = []
            if params.cpus == "auto":
                pinned, cautions = pinning.pin(head, machine_of, guests, params.vcpus)
                applied += pinned

            def enter(guest: Wanted) -> Entered:
                inside = contextlib.ExitStack()
                stack.enter_context(inside)
                return inside.enter_context(
                    entered(own, control, machine_of[guest.name], params.control, params.guest_files, site.probe)
                )

            def lacks(name: str) -> tuple[str, list[str]]:
                programs = needs.needed(site.programs.get(name, ()), params, topology.link)
                return name, needs.lacking(way_of[name].host, programs)

            def configured(guest: Wanted) -> tuple[AgentHost, str, list[Applied], dict[str, Fact]]:
                machine, way = machine_of[guest.name], way_of[guest.name]
                device = configure.device_of(way.host, guest.mac)
                configure.configure(way.host, device, guest.address, topology.link.mtu, params)
                items = configure.applied(way.host, device, guest.address, guest.mac, topology.link.mtu, params)
                asked = None if params.control == "auto" else params.control
                network.set_coalescing(way.host, device, params)
                items += network.applied_coalescing(way.host, device, params)
                network.set_route_metrics(way.host, [device], params)
                items += network.applied_route_metrics(way.host, [device], params)
                items.append(Applied(guest.name, "control", asked, way.control, way.why))
                facts = {**describe(way.host, device), **_facts(machine), "control": way.control}
                return way.host, device, items, facts

            way_of = {guest.name: way for guest, way in zip(guests, network.on_all(guests, enter), strict=True)}
            needs.refuse(network.on_all(list(way_of), lacks))
            answers = network.on_all(guests, configured)
            hosts = {host.name: host for host, _, _, _ in answers}
            if params.capture == "on":
                applied += stack.enter_context(captured(own, machine_of, site.place(MACHINE)))
            machine_of = machines(own.socket)
            for guest in guests:
                applied += launch.applied(machine_of[guest.name], params, guest, bridge)
                applied += shaping.applied(machine_of[guest.name], topology.link)
            if topology.trunk == "none":
                applied.append(launch.on_one_node(machine_of))
            applied += _beside(own.socket)
            yield Bed(
                hosts=hosts,
                addresses={guest.name: guest.address.partition("/")[0] for guest in guests},
                targets=[
                    Target(host.name, {device: host.name}, own_kernel=params.own_kernel) for host, device, _, _ in answers
                ],
                applied=applied + [item for _, _, items, _ in answers for item in items],
                passport={
                    MACHINE: _cluster(head, own.socket, params),
                    **{host.name: facts for host, _, _, facts in answers},
                },
                cautions=cautions + _cautions(params, hosts),
                lab=own.id,
            )


def _namespace(head: Head, prefix: str) -> Check:
    name = f"{prefix}_{secrets.token_hex(5)}"
    try:
        try:
            space.make(head, name)
        finally:
            space.clear(head, name)
    except HostError as error:
        return Check("minimega namespace", False, str(error), "look at minimega's log")
    return Check("minimega namespace", True, f"{name} was made and cleared")


def _network(own: Space, params: MinimegaSettings, topology: Topology) -> tuple[str | None, list[Applied]]:
    """Nodes, VLAN, and the guests' bridge, which is the run's own, with tunnels between the nodes, where a trunk is one."""
    applied: list[Applied] = []
    if params.nodes:
        own.socket.ask("ns", "add-hosts", ",".join(params.nodes))
    if params.vlan is not None:
        own.socket.ask("vlans", "add", params.network, str(params.vlan))
        vlans = {row["alias"]: row["vlan"] for row in own.socket.ask("vlans").rows}
        applied.append(Applied(params.network, "vlan", str(params.vlan), vlans.get(params.network), "vlans"))
    if topology.trunk not in ("gre", "vxlan"):
        return params.bridge, applied
    bridge = f"tb{own.id}"
    own.socket.ask("ns", "bridge", bridge, topology.trunk)
    rows = own.socket.ask("ns", "run", "bridge").rows
    tunnels = {row["host"]: row["tunnels"] not in ("", "[]") for row in rows if row["bridge"] == bridge}
    for node in params.nodes[:2]:
        applied.append(Applied(node, f"{topology.trunk} tunnel of {bridge}", True, tunnels.get(node), "ns run bridge"))
    return bridge, applied


def _facts(machine: Machine) -> Facts:
    return {
        "node": machine.node,
        "NIC model": machine.network.get("Driver"),
        "vcpus": machine.data.get("VCPUs"),
        "QEMU": machine.data.get("QemuPath"),
        "CPU model": machine.data.get("CPU"),
    }


def _cluster(head: Head, socket: CommandSocket, params: MinimegaSettings) -> Facts:
    """What the guests' machines are made of."""
    facts: dict[str, Fact] = {"minimega": head.socket.ask("version").first.text}
    facts["switch"] = "Open vSwitch"
    for row in socket.ask("host").rows:
        facts[f"node {row['host']}"] = ", ".join(f"{name} {row[name]}" for name in ("cpus", "memtotal") if name in row)
    for name, path in params.files().items():
        facts[name] = path
        if path.startswith("/") and name != "filesystem":
            facts[f"{name} sha256"] = head.digest(path)
    return facts


def _beside(socket: CommandSocket) -> list[Applied]:
    """How busy the nodes are, and what is on their bridges. None of it is asked for, and it differs from run to run."""
    applied = [Applied(row["host"], "load", None, row.get("load"), "host") for row in socket.ask("host").rows]
    for row in socket.ask("bridge").rows:
        applied += [Applied(row["bridge"], name, None, row.get(name), "bridge") for name in ("vlans", "trunks", "tunnels")]
    return applied


def _cautions(params: MinimegaSettings, hosts: Mapping[str, AgentHost]) -> list[Caution]:
    cautions = []
    if params.cpus == "none":
        cautions.append(Caution(Kind.UNPINNED))
    if params.type == "kvm":
        for host in hosts.values():
            if "kvm-clock" not in (content(host, _CLOCKS) or "").split():
                cautions.append(
                    Caution(Kind.SOFTWARE_CPU, f"{host.name} has no kvm-clock, which hardware virtualisation gives")
                )
    return cautions


minimega = Minimega()
"""The driver."""
