"""The switches of a lab, the machines that they are on, and what joins them.

A fabric makes the ends of hosts' links (a veth pair, a tap), puts them on their switches and shapes them; everything is read
back.  With a trunk the servers' switch is on a second machine: where there is one machine, a second network namespace of the
lab stands for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from twinbed.hosts.agent import AgentHost
from twinbed.hosts.lab import Lab, another_machine
from twinbed.hosts.site import Site
from twinbed.links import bridge, network, shaping
from twinbed.links.layout import Layout, Nic
from twinbed.model.caution import Caution, Kind
from twinbed.model.plugin import Applied, Target
from twinbed.model.topology import Topology


@contextlib.contextmanager
def open_fabric(lab: Lab, topology: Topology, layout: Layout, site: Site) -> Iterator[Fabric]:
    """The switches, with nothing on them yet."""
    with contextlib.ExitStack() as stack:
        machines = {lab.machine.name: lab.machine}
        for name in layout.machines:
            if name not in machines:
                machines[name] = stack.enter_context(another_machine(lab, name, site.place(name)))
        for machine in machines.values():
            network.quieten(machine)
        for switch in layout.switches:
            machines[switch.machine].run(["ip", "-batch", "-"], stdin=bridge.switch(switch.name).encode())
        yield Fabric(topology, layout, machines)


@dataclass
class Fabric:
    topology: Topology
    layout: Layout
    machines: Mapping[str, AgentHost]
    kinds: dict[str, str] = field(default_factory=dict)
    """Port -> kind of device, as ``ip`` names it."""

    def attach_container(self, nic: Nic, namespace_pid: int) -> None:
        """A veth pair between the switch and the network namespace of a process."""
        self._attach(nic, bridge.veth(nic, self.topology.link.mtu, namespace_pid), "veth")

    def attach_guest(self, nic: Nic, queues: int = 1) -> None:
        """A tap that QEMU opens by its name."""
        self._attach(nic, bridge.tap(nic, self.topology.link.mtu, queues), "tun")

    def _attach(self, nic: Nic, plan: str, kind: str) -> None:
        machine = self.machines[nic.machine]
        machine.run(["ip", "-batch", "-"], stdin=(plan + bridge.join(nic.port, nic.switch)).encode())
        self.kinds[nic.port] = kind

    def shape(self) -> None:
        """Towards clients and servers, not routers: each direction of a path then passes one shaper."""
        for name, machine in self.machines.items():
            if plan := "".join(shaping.plan(nic.port, self.topology.link.at("switch")) for nic in self._ends(name)):
                machine.run(["tc", "-batch", "-"], stdin=plan.encode())

    def applied(self) -> list[Applied]:
        result = []
        for name, machine in self.machines.items():
            devices = network.devices_of(machine)
            for switch in self.layout.switches:
                if switch.machine == name:
                    result += bridge.applied_switch(switch.name, devices)
            for nics in self.layout.nics.values():
                for nic in nics:
                    if nic.machine == name:
                        result += bridge.applied_port(nic, self.topology.link.mtu, self.kinds[nic.port], devices)
                        result += bridge.applied_joined(nic, devices)
            for nic in self._ends(name):
                result += network.applied_shaping(machine, nic.port, self.topology.link.at("switch"))
        return result

    def targets(self) -> list[Target]:
        """Each machine, with the ports of clients and servers."""
        return [Target(name, {nic.port: nic.host for nic in self._ends(name)}) for name in self.machines]

    def cautions(self) -> list[Caution]:
        if len(self.machines) > 1:
            return [Caution(Kind.STAND_IN, f"{' and '.join(self.machines)} are two network namespaces of one machine")]
        return []

    def _ends(self, machine: str) -> list[Nic]:
        return [
            nics[0] for host, nics in self.layout.nics.items() if host not in self.layout.routers and nics[0].machine == machine
        ]
