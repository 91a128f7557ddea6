"""The switches of one machine of a lab, made and read back: Linux bridges or an Open vSwitch, behind one set of calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from twinbed.contracts.bed import Applied
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.links import bridge, network, openvswitch, trunk
from twinbed.links.device import Device, Port
from twinbed.links.layout import SWITCH
from twinbed.links.openvswitch import OpenVSwitch
from twinbed.links.trunk import Tunnel
from twinbed.model.json import loads
from twinbed.model.topology import Topology

_ROUTE_LIMIT_S = 30.0


class Switches(Protocol):
    def add(self, name: str) -> None: ...

    def join(self, port: Port) -> None:
        """Make a device of the machine a port."""
        ...

    def tunnel(self, end: Tunnel, port: Port, mtu: int) -> None:
        """Join the switches of two machines; ``mtu`` is the hosts'."""
        ...

    def applied(self, names: Sequence[str], ports: Sequence[Port], devices: Sequence[Device]) -> list[Applied]:
        """Read back switches and the ports that were joined."""
        ...

    def applied_tunnel(self, end: Tunnel, port: Port, mtu: int, devices: Sequence[Device]) -> list[Applied]: ...

    def facts(self) -> dict[str, str | None]:
        """Return facts for the machine's passport."""
        ...


def start(machine: AgentHost, topology: Topology, folder: Path) -> Switches:
    """Start the switches. ``folder`` is private to the lab, and does not exist yet."""
    if topology.switch == "bridge":
        return Bridges(machine, trunk.vlan(topology) is not None)
    return OpenVSwitches(machine, OpenVSwitch(machine, folder, openvswitch.DATAPATHS[topology.switch]))


class Bridges:
    def __init__(self, machine: AgentHost, vlans: bool) -> None:
        self.machine, self.vlans = machine, vlans

    def add(self, name: str) -> None:
        self._ip(bridge.switch(name, vlans=self.vlans))

    def join(self, port: Port) -> None:
        self._ip(bridge.join(port.device, port.switch))
        if plan := bridge.vlan(port):
            self.machine.run(["bridge", "-batch", "-"], stdin=plan.encode())

    def tunnel(self, end: Tunnel, port: Port, mtu: int) -> None:
        outer = mtu + trunk.HEADERS[end.kind]
        self._ip(trunk.address(end.cable, end, outer) + trunk.tunnel_device(end, mtu))
        self.join(port)

    def applied(self, names: Sequence[str], ports: Sequence[Port], devices: Sequence[Device]) -> list[Applied]:
        result = [item for name in names for item in bridge.applied_switch(name, devices, vlans=self.vlans)]
        return result + self._joined(ports, devices)

    def _joined(self, ports: Sequence[Port], devices: Sequence[Device]) -> list[Applied]:
        result = [item for port in ports for item in bridge.applied_joined(port, devices)]
        if self.vlans:
            listing = self.machine.run(bridge.VLANS).stdout
            with network.understood(self.machine):
                shown = loads(listing or b"[]")
                result += [item for port in ports for item in bridge.applied_vlan(port, shown)]
        return result

    def applied_tunnel(self, end: Tunnel, port: Port, mtu: int, devices: Sequence[Device]) -> list[Applied]:
        outer = mtu + trunk.HEADERS[end.kind]
        return [
            *trunk.applied_end(end.cable, end, outer, devices),
            *trunk.applied_tunnel_device(end, mtu, devices),
            *self._joined([port], devices),
        ]

    def facts(self) -> dict[str, str | None]:
        return {}

    def _ip(self, plan: str) -> None:
        self.machine.run(["ip", "-batch", "-"], stdin=plan.encode())


class OpenVSwitches:
    def __init__(self, machine: AgentHost, servers: OpenVSwitch) -> None:
        self.machine, self.servers = machine, servers

    @property
    def _own_tunnels(self) -> bool:
        """Return whether ovs-vswitchd makes tunnels itself; otherwise the kernel does, from the cable's own address."""
        return self.servers.datapath == "netdev"

    def add(self, name: str) -> None:
        self.servers.vsctl(openvswitch.switch(name, self.servers.datapath))

    def join(self, port: Port) -> None:
        self.servers.vsctl(openvswitch.join(port))

    def tunnel(self, end: Tunnel, port: Port, mtu: int) -> None:
        outer = mtu + trunk.HEADERS[end.kind]
        if self._own_tunnels:
            underlay = _underlay(end)
            self.servers.vsctl(
                [
                    *openvswitch.switch(underlay, self.servers.datapath, end.local_mac),
                    *("--", *openvswitch.join(Port(end.cable, underlay))),
                    *("--", "set", "interface", underlay, f"mtu_request={outer}"),
                ]
            )
        way_out = _underlay(end) if self._own_tunnels else end.cable
        self.machine.run(["ip", "-batch", "-"], stdin=trunk.address(way_out, end, outer).encode())
        if self._own_tunnels:
            self._until_routed(end)
            self.servers.appctl(["tnl/neigh/set", _underlay(end), end.remote, end.remote_mac])
        self.servers.vsctl([*openvswitch.join(port), "--", *openvswitch.tunnel(port, end.kind, trunk.options(end))])

    def _until_routed(self, end: Tunnel) -> None:
        """Wait until ovs-vswitchd has learnt the address from the kernel, or the limit; ``applied_tunnel`` reads it back."""
        deadline = time.monotonic() + _ROUTE_LIMIT_S
        while self._way_out(end) != _underlay(end) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _way_out(self, end: Tunnel) -> str | None:
        """Return the bridge by which ovs-vswitchd sends the tunnel's packets."""
        try:
            return openvswitch.way_out(self.servers.appctl(["ovs/route/lookup", end.remote]))
        except HostError:
            return None

    def applied(self, names: Sequence[str], ports: Sequence[Port], devices: Sequence[Device]) -> list[Applied]:
        listings, datapath = self.servers.listings(), self.servers.datapath
        result = [item for name in names for item in openvswitch.applied_switch(name, datapath, listings)]
        result += [item for port in ports for item in openvswitch.applied_joined(port, datapath, listings)]
        return result + self.servers.applied_buffer(SWITCH)

    def applied_tunnel(self, end: Tunnel, port: Port, mtu: int, devices: Sequence[Device]) -> list[Applied]:
        outer, datapath = mtu + trunk.HEADERS[end.kind], self.servers.datapath
        listings = self.servers.listings()
        way_out = _underlay(end) if self._own_tunnels else end.cable
        result = trunk.applied_end(way_out, end, outer, devices)
        result += openvswitch.applied_joined(port, datapath, listings, kind=end.kind)
        result += openvswitch.applied_options(port, trunk.options(end), listings)
        if self._own_tunnels:
            result += openvswitch.applied_switch(way_out, datapath, listings)
            result += openvswitch.applied_joined(Port(end.cable, way_out), datapath, listings)
            neighbours = openvswitch.neighbours(self.servers.appctl(["tnl/neigh/show"]))
            result += [
                Applied(port.device, "way_out", way_out, self._way_out(end), "ovs-appctl ovs/route/lookup"),
                Applied(port.device, "neighbour", end.remote_mac, neighbours.get(end.remote), "ovs-appctl tnl/neigh/show"),
            ]
        return result

    def facts(self) -> dict[str, str | None]:
        return {"Open vSwitch": self.servers.version}


def _underlay(end: Tunnel) -> str:
    """Return the bridge that has the tunnel's address and the cable as a port, where ovs-vswitchd makes tunnels itself."""
    return f"underlay{end.trunk}"
