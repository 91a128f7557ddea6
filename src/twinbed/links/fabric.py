"""The switches of a lab, the machines that they are on, and what joins them.

A fabric makes the ends of hosts' links (a veth pair, a tap), puts them on their switches and shapes them; everything is read
back.  With a trunk the servers' switch is on a second machine: where there is one machine, a second network namespace of the
lab stands for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab, another_machine
from twinbed.links import bridge, network, openvswitch, shaping, switches, trunk
from twinbed.links.layout import Layout, Nic
from twinbed.links.ports import Port
from twinbed.links.switches import Switches
from twinbed.links.uplink import KIND, lend
from twinbed.model.caution import Caution, Kind
from twinbed.model.hostsettings import HostSettings
from twinbed.model.plugin import MACHINE, Applied, Target
from twinbed.model.topology import Topology


@contextlib.contextmanager
def open_fabric(lab: Lab, topology: Topology, layout: Layout, place: Callable[[str], Path]) -> Iterator[Fabric]:
    """The switches and what joins them, with no hosts on them yet. ``place`` is where a machine's artifacts go."""
    with contextlib.ExitStack() as stack:
        machines = {lab.machine.name: lab.machine}
        for name in layout.machines:
            if name not in machines:
                machines[name] = stack.enter_context(another_machine(lab, name, place(name)))
        for machine in machines.values():
            network.quieten(machine)
        made = network.on_all(
            list(machines.values()), lambda machine: switches.start(machine, topology, lab.scratch / f"{machine.name}.switch")
        )
        fabric = Fabric(topology, layout, machines, dict(zip(machines, made, strict=True)))
        for switch in layout.switches:
            fabric.switches[switch.machine].add(switch.name)
        if topology.trunk != "none":
            fabric.join_machines()
        if layout.uplink:
            fabric.join_switches(*layout.uplink)
        yield fabric


@dataclass
class Fabric:
    topology: Topology
    layout: Layout
    machines: Mapping[str, AgentHost]
    switches: Mapping[str, Switches]
    """Machine -> what makes its switches."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Port -> kind of device, as ``ip`` names it."""

    def join_machines(self) -> None:
        """The trunk, from the cable up."""
        first, second = self.machines.values()
        pid = int(second.read("/proc/self/stat").split()[0])
        first.run(["ip", "-batch", "-"], stdin=trunk.cable(trunk.mtu(self.topology), pid).encode())
        second.run(["ip", "-batch", "-"], stdin=trunk.up(trunk.CABLE).encode())
        port = trunk.port(self.topology)
        for name, own in self.switches.items():
            if end := trunk.tunnel(self.topology, name):
                own.tunnel(end, port, self.topology.link.mtu)
            else:
                own.join(port)

    def join_switches(self, first: str, second: str) -> None:
        """The shared link of a star: a veth pair from one switch to the other."""
        (machine,) = self.machines.values()
        machine.run(["ip", "-batch", "-"], stdin=bridge.pair(first, second, self.topology.link.mtu).encode())
        for port in self._uplink_ports():
            self.switches[machine.name].join(port)

    def _uplink_ports(self) -> list[Port]:
        access = trunk.vlan(self.topology)
        ends = zip(self.layout.uplink or (), self.layout.switches, strict=False)
        return [Port(end, switch.name, access=access) for end, switch in ends]

    def attach_container(self, nic: Nic, namespace_pid: int) -> None:
        """A veth pair between the switch and the network namespace of a process."""
        self._attach(nic, bridge.veth(nic, self.topology.link.mtu, namespace_pid), "veth")

    def attach_guest(self, nic: Nic, queues: int = 1) -> None:
        """A tap that QEMU opens by its name."""
        self._attach(nic, bridge.tap(nic, self.topology.link.mtu, queues), "tun")

    def attach_uplink(self, lab: Lab, nic: Nic, uplink: str) -> None:
        """A NIC of this machine, at the other end of whose link the host is."""
        if nic.machine != MACHINE:
            raise HostError(f"{nic.host}: with a trunk its switch is on a machine that has no NICs: give clients the uplink")
        lend(lab, uplink, nic.port)
        self._attach(nic, f"link set {nic.port} mtu {self.topology.link.mtu} up\n", KIND)

    def _attach(self, nic: Nic, plan: str, kind: str) -> None:
        self.machines[nic.machine].run(["ip", "-batch", "-"], stdin=plan.encode())
        self.switches[nic.machine].join(self._port(nic))
        self.kinds[nic.port] = kind

    def _port(self, nic: Nic) -> Port:
        return Port(nic.port, nic.switch, access=trunk.vlan(self.topology))

    def host_settings(self, settings: HostSettings) -> HostSettings:
        """With what the switch needs of hosts."""
        return openvswitch.host_settings(self.topology, settings)

    def shape(self) -> None:
        """Towards clients and servers, not routers: each direction of a path then passes one shaper."""
        for name, machine in self.machines.items():
            plan = "".join(shaping.plan(nic.port, self.topology.link.at("switch")) for nic in self._ends(name))
            plan += "".join(shaping.plan(end, self.topology.shared) for end in self.layout.uplink or ())
            if plan:
                machine.run(["tc", "-batch", "-"], stdin=plan.encode())

    def applied(self) -> list[Applied]:
        return [self._told_apart(name, item) for name in self.machines for item in self._applied(name)]

    def _told_apart(self, machine: str, item: Applied) -> Applied:
        """Two machines have a switch and a trunk of the same name; hosts' ports are each the only one of its name."""
        if machine == MACHINE or item.subject in self.kinds:
            return item
        return replace(item, subject=f"{machine}.{item.subject}")

    def _applied(self, name: str) -> list[Applied]:
        machine, own, link = self.machines[name], self.switches[name], self.topology.link
        devices = network.devices_of(machine)
        nics = [nic for nics in self.layout.nics.values() for nic in nics if nic.machine == name]
        ports = [self._port(nic) for nic in nics]
        result: list[Applied] = []
        if self.topology.trunk != "none":
            result += trunk.applied_cable(trunk.mtu(self.topology), devices)
            if end := trunk.tunnel(self.topology, name):
                result += own.applied_tunnel(end, trunk.port(self.topology), link.mtu, devices)
            else:
                ports.append(trunk.port(self.topology))
        ports += self._uplink_ports()
        result += own.applied([switch.name for switch in self.layout.switches if switch.machine == name], ports, devices)
        for nic in nics:
            result += bridge.applied_port(nic, link.mtu, self.kinds[nic.port], devices)
        for nic in self._ends(name):
            result += network.applied_shaping(machine, nic.port, link.at("switch"))
        for port in self._uplink_ports():
            result += network.applied_shaping(machine, port.device, self.topology.shared)
        return result

    def targets(self) -> list[Target]:
        """Each machine, with the ports of the workload's clients and servers."""
        return [
            Target(
                name,
                {nic.port: nic.host for nic in self._ends(name) if nic.host not in self.layout.bystanders},
                captures=True,
            )
            for name in self.machines
        ]

    def cautions(self) -> list[Caution]:
        if len(self.machines) > 1:
            return [Caution(Kind.STAND_IN, f"{' and '.join(self.machines)} are two network namespaces of one machine")]
        return []

    def _ends(self, machine: str) -> list[Nic]:
        return [
            nics[0] for host, nics in self.layout.nics.items() if host not in self.layout.routers and nics[0].machine == machine
        ]
