"""Makes a testbed in a running minimega: a namespace of its own, guests, shaping, tunnels and captures; reads all settings
back; clears the namespace at the end."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

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
from twinbed.testbeds.minimega import configure, launch, shaping, space
from twinbed.testbeds.minimega.control import Control
from twinbed.testbeds.minimega.head import Head, open_head
from twinbed.testbeds.minimega.host import Entered, entered
from twinbed.testbeds.minimega.launch import Wanted
from twinbed.testbeds.minimega.machine import Machine, machines
from twinbed.testbeds.minimega.settings import MinimegaSettings
from twinbed.testbeds.minimega.socket import CommandSocket
from twinbed.testbeds.minimega.space import Leftover, Space, own_space

_HELD_BACK_S = 1.5
"""libpcap hands packets to minimega in batches at most 1 s apart, and minimega closes a capture without the last batch."""


@contextlib.contextmanager
def captured(own: Space, guests: Mapping[str, Machine], to: Path) -> Iterator[list[Applied]]:
    """Capture each guest's packets at its tap while the block runs, and fetch one file per guest afterwards.

    minimega keeps 1600 bytes of a packet, on the node that runs the guest."""
    here = own.head.node
    if elsewhere := [f"{name} on {machine.node}" for name, machine in guests.items() if machine.node != here]:
        where = ", ".join(elsewhere)
        raise HostError(
            f"minimega: captures can be fetched from the head node ({here}) only, not for {where}",
            advice="set capture: off, or run all guests on the head node",
        )
    files = {guest: f"{own.name}-{guest}.pcap" for guest in guests}
    for guest, file in files.items():
        own.socket.ask("capture", "pcap", "vm", guest, "0", file)
    capture_of = {row["interface"]: row for row in own.socket.ask("capture").rows}
    applied = [
        Applied(
            guest,
            "capture",
            file,
            Path(capture_of[f"{guest}:0"]["path"]).name if f"{guest}:0" in capture_of else None,
            "capture",
        )
        for guest, file in files.items()
    ]
    try:
        yield applied
    finally:
        time.sleep(_HELD_BACK_S)  # nothing reports when the last batch was written
        own.socket.ask("clear", "capture")
        for guest, file in files.items():
            if (row := capture_of.get(f"{guest}:0")) is None:
                raise HostError(f"minimega: {guest}: `capture` does not list the capture {file}")
            own.head.get(row["path"], to / f"{guest}.pcap")


_CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"


class Minimega(Driver[MinimegaSettings]):
    name = "minimega"
    params = MinimegaSettings
    summary = "virtual machines or containers in a running minimega cluster, through its command socket"
    also = ("cluster", "phenix", "miniccc")

    def check(self, params: MinimegaSettings) -> Sequence[Check]:
        with contextlib.ExitStack() as stack:
            where = f"{params.base}/minimega" + (f" on {params.head}" if params.head else "")
            try:
                head = stack.enter_context(open_head(params.base, params.head))
                version = head.socket.ask("version", limit_s=10.0).first.text
            except HostError as error:
                remedy = f"minimega -nostdin & (so that you may read {where}), or set base or head in the study file"
                return [Check("minimega", False, str(error), remedy)]
            checks = [Check("minimega", True, version), _namespace(head, params.namespace)]
            for name, path in params.files().items():
                if path.startswith("/") and name != "filesystem":
                    digest = head.digest(path)
                    status = digest or "cannot be read on the head node"
                    checks.append(Check(f"{name} {path}", digest is not None, status, f"put the {name} at {path} on that node"))
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
                pinned, cautions = launch.pin(head, machine_of, guests, params.vcpus)
                applied += pinned

            def enter(guest: Wanted) -> Entered:
                inside = contextlib.ExitStack()
                stack.enter_context(inside)
                return inside.enter_context(
                    entered(own, control, machine_of[guest.name], params.control, params.guest_files, site.probe)
                )

            def lacks(name: str) -> tuple[str, list[str]]:
                programs = configure.needed(site.programs.get(name, ()), params, topology.link)
                return name, configure.lacking(way_of[name].host, programs)

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
            configure.refuse(network.on_all(list(way_of), lacks))
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
            applied += _surroundings(own.socket)
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
        return Check("minimega namespace", False, str(error), "minimega -e namespace (and read minimega's log)")
    return Check("minimega namespace", True, f"{name} was made and cleared")


def _network(own: Space, params: MinimegaSettings, topology: Topology) -> tuple[str | None, list[Applied]]:
    """Set nodes and VLAN, and make a bridge with tunnels between the nodes if the trunk is a tunnel. Return the guests' bridge
    and all settings read back."""
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
    """Describe minimega, the nodes and the guests' files."""
    facts: dict[str, Fact] = {"minimega": head.socket.ask("version").first.text}
    facts["switch"] = "Open vSwitch"
    for row in socket.ask("host").rows:
        facts[f"node {row['host']}"] = ", ".join(f"{name} {row[name]}" for name in ("cpus", "memtotal") if name in row)
    for name, path in params.files().items():
        facts[name] = path
        if path.startswith("/") and name != "filesystem":
            facts[f"{name} sha256"] = head.digest(path)
    return facts


def _surroundings(socket: CommandSocket) -> list[Applied]:
    """Record the load of the nodes and the content of their bridges. A study sets none of it, and it differs between runs."""
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
