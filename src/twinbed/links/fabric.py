"""The fabric of a lab: its switches, the machines under them, and the links between switches.

It makes the ends of hosts' links (a veth pair, a tap), puts them on their switches and shapes them; everything is read back.
With a trunk, the servers' switch and the switch of each group of clients have their own machines, for which network namespaces
of the lab stand in.

A NIC of this machine can be lent to a lab, so that hosts in it reach hosts outside.  The lab then has a macvlan device on the
NIC, in the mode that takes all its frames.  The NIC itself does not move or change, and the device goes with the lab.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from twinbed.contracts.bed import Applied
from twinbed.contracts.host_settings import HostSettings
from twinbed.contracts.place import MACHINE, Target
from twinbed.hosts import process
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.hosts.lab import Lab, another_machine
from twinbed.hosts.process import ProcessFailed
from twinbed.links import bridge, delay_line, device, network, openvswitch, shaping, switches, trunk
from twinbed.links.delay_line import DelayLine
from twinbed.links.device import Port
from twinbed.links.layout import Layout, Nic
from twinbed.links.switches import Switches
from twinbed.model.caution import Caution, Kind
from twinbed.model.topology import Link, Topology

MACVLAN = "macvlan"


def lend_nic(lab: Lab, nic: str, name: str) -> None:
    """Make the device ``name`` in the lab on ``nic``. Raises HostError for a NIC that is missing, down, addressed or lent."""
    try:
        port = device.parse(process.run((*device.SHOW, "dev", nic)).stdout)[0]
    except (ProcessFailed, ValueError, IndexError) as error:
        raise HostError(f"uplink: this machine has no NIC {nic}: {error}") from None
    addresses = [address for address in port.addresses if not address.startswith("fe80:")]
    if addresses:
        raise HostError(
            f"uplink: {nic} has the address {addresses[0]}, and would lose all its packets to the lab: give a NIC without"
            " addresses that only the experiment uses"
        )
    if not port.up:
        raise HostError(f"uplink: {nic} is down: bring it up first (ip link set {nic} up)")
    command = ["ip", "link", "add", "link", nic, "name", name, "netns", str(lab.first_process())]
    try:
        process.run([*command, "type", MACVLAN, "mode", "passthru"])
    except ProcessFailed as error:
        raise HostError(f"uplink: {nic} cannot be lent to the lab, perhaps because another lab has it: {error}") from None


@contextlib.contextmanager
def open_fabric(lab: Lab, topology: Topology, layout: Layout, place: Callable[[str], Path]) -> Iterator[Fabric]:
    """Open the switches and their links, with no hosts yet. ``place`` gives the folder of a machine's artifacts."""
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
    """Machine -> its switches."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Port -> kind of device, as ``ip`` names it."""
    lines: list[DelayLine] = field(default_factory=list)

    def join_machines(self) -> None:
        """Make the trunks, each from the cable up."""
        for number, (clients, servers) in enumerate(self.layout.trunks):
            first, second = self.machines[clients], self.machines[servers]
            pid = int(second.read("/proc/self/stat").split()[0])
            first.run(["ip", "-batch", "-"], stdin=trunk.cable(number, trunk.mtu(self.topology), pid).encode())
            second.run(["ip", "-batch", "-"], stdin=trunk.up(trunk.cable_of(number)).encode())
            for name in (clients, servers):
                port = trunk.port(self.topology, number, name)
                if end := trunk.tunnel(self.topology, number, name):
                    self.switches[name].tunnel(end, port, self.topology.link.mtu)
                else:
                    self.switches[name].join(port)

    def join_switches(self, first: str, second: str) -> None:
        """Make the shared link of a star: a veth pair from one switch to the other."""
        (machine,) = self.machines.values()
        machine.run(["ip", "-batch", "-"], stdin=bridge.pair(first, second, self.topology.link.mtu).encode())
        for port in self._uplink_ports():
            self.switches[machine.name].join(port)

    def _uplink_ports(self) -> list[Port]:
        access = trunk.vlan(self.topology)
        ends = zip(self.layout.uplink or (), self.layout.switches, strict=False)
        return [Port(end, switch.name, access=access) for end, switch in ends]

    def attach_container(self, nic: Nic, namespace_pid: int) -> None:
        """Make a veth pair between the switch and the network namespace of a process."""
        self._attach(nic, bridge.veth(nic, self.topology.link.mtu, namespace_pid), "veth")

    def attach_guest(self, nic: Nic, queues: int = 1) -> None:
        """Make a tap that QEMU opens by its name."""
        self._attach(nic, bridge.tap(nic, self.topology.link.mtu, queues), "tun")

    def attach_uplink(self, lab: Lab, nic: Nic, uplink: str) -> None:
        """Use a NIC of this machine, whose link leads to the host."""
        if nic.machine != MACHINE:
            raise HostError(
                f"{nic.host}: the trunk puts its switch on {nic.machine}, which has no NICs:"
                f" give the uplink to clients on {MACHINE}"
            )
        lend_nic(lab, uplink, nic.port)
        self._attach(nic, f"link set {nic.port} mtu {self.topology.link.mtu} up\n", MACVLAN)

    def _attach(self, nic: Nic, plan: str, kind: str) -> None:
        machine = self.machines[nic.machine]
        machine.run(["ip", "-batch", "-"], stdin=plan.encode())
        if self._is_delayed(nic):
            machine.run(["ip", "-batch", "-"], stdin=delay_line.pair(nic.port, self.topology.link.mtu).encode())
            machine.run(["tc", "-batch", "-"], stdin=delay_line.past(nic.port).encode())
        self.switches[nic.machine].join(self._port(nic))
        self.kinds[nic.port] = kind

    def _port(self, nic: Nic) -> Port:
        device = delay_line.near(nic.port) if self._is_delayed(nic) else nic.port
        return Port(device, nic.switch, access=trunk.vlan(self.topology))

    def _is_delayed(self, nic: Nic) -> bool:
        """Return whether a delay line delays the NIC's frames, not the port's queueing disciplines."""
        return self._has_lines and nic.host not in self.layout.routers

    @property
    def _has_lines(self) -> bool:
        link = self.topology.link.at("switch")
        return link.emulates and link.emulator == "delay-line"

    @property
    def _at_ports(self) -> Link:
        """Return the link that a port's queueing disciplines make."""
        link = self.topology.link.at("switch")
        return delay_line.shaped(link) if self._has_lines else link

    def host_settings(self, settings: HostSettings) -> HostSettings:
        """Return the hosts' settings, with the changes that the switch needs."""
        return openvswitch.host_settings(self.topology, settings)

    def shape(self) -> None:
        """Shape the links towards clients and servers, not routers, so that each direction of a path passes one shaper."""
        for name, machine in self.machines.items():
            ends = self._ends(name)
            plan = "".join(shaping.plan(nic.port, self._at_ports) for nic in ends)
            plan += "".join(shaping.plan(end, self.topology.shared) for end in self.layout.uplink or ())
            if plan:
                machine.run(["tc", "-batch", "-"], stdin=plan.encode())
            if self._has_lines and ends:
                link, ports = self.topology.link.at("switch"), [nic.port for nic in ends]
                self.lines.append(delay_line.start(machine, link, ports))

    def applied(self) -> list[Applied]:
        return [self._with_machine(name, item) for name in self.machines for item in self._applied(name)]

    def _with_machine(self, machine: str, item: Applied) -> Applied:
        """Return an item with its machine's name, where switches or ends of trunks have one name on several machines."""
        if machine == MACHINE or item.subject in self.kinds:
            return item
        return replace(item, subject=f"{machine}.{item.subject}")

    def _applied(self, name: str) -> list[Applied]:
        machine, own, link = self.machines[name], self.switches[name], self.topology.link
        devices = network.devices_of(machine)
        nics = [nic for nics in self.layout.nics.values() for nic in nics if nic.machine == name]
        ports = [self._port(nic) for nic in nics]
        result: list[Applied] = []
        for number in (number for number, ends in enumerate(self.layout.trunks) if name in ends):
            port = trunk.port(self.topology, number, name)
            result += trunk.applied_cable(number, trunk.mtu(self.topology), devices)
            if end := trunk.tunnel(self.topology, number, name):
                result += own.applied_tunnel(end, port, link.mtu, devices)
            else:
                ports.append(port)
        ports += self._uplink_ports()
        result += own.applied([switch.name for switch in self.layout.switches if switch.machine == name], ports, devices)
        for nic in nics:
            result += bridge.applied_port(nic, link.mtu, self.kinds[nic.port], devices)
        for nic in self._ends(name):
            result += network.applied_shaping(machine, nic.port, self._at_ports)
        for line in self.lines:
            if line.machine is machine:
                result += line.applied()
        for port in self._uplink_ports():
            result += network.applied_shaping(machine, port.device, self.topology.shared)
        return result

    def targets(self) -> list[Target]:
        """Return each machine as a target, with the ports of the workload's clients and servers."""
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
            *others, last = self.machines
            return [Caution(Kind.STAND_IN, f"{', '.join(others)} and {last} are network namespaces of one machine")]
        return []

    def facts(self, machine: str) -> Mapping[str, str | None]:
        """Return facts for the machine's passport."""
        emulates = self.topology.link.at("switch").emulates
        return {**self.switches[machine].facts(), **({"emulator": self.topology.link.emulator} if emulates else {})}

    def troubles(self) -> list[str]:
        return [trouble for line in self.lines if (trouble := line.trouble()) is not None]

    def at_end(self) -> list[Caution]:
        """End the delay lines, after which nothing may be sent."""
        return [caution for line in self.lines for caution in line.end()]

    def _ends(self, machine: str) -> list[Nic]:
        return [
            nics[0] for host, nics in self.layout.nics.items() if host not in self.layout.routers and nics[0].machine == machine
        ]
