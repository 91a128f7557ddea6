"""The layout of a topology: switches and their machines, and hosts' NICs with their switches and addresses. Pure.

Addresses are private to the lab.  Without routers pair i is a network of its own: 10.77.i.1 (client) and 10.77.i.2 (server),
/24.  Hosts of roles are one network, 10.77.0.1, 10.77.0.2 and so on.

With R routers there are R + 1 networks 10.78.s.0/24: clients are 10.78.0.(10 + i), servers 10.78.R.(10 + i), and router r
has 10.78.(r - 1).2 towards the clients and 10.78.r.1 towards the servers.  Bystanders are numbered after the pairs.

With a trunk the servers are on ``machine2``, and the clients in turn on ``machine``, ``machine3`` and so on. Trunk t, from 0,
joins the t-th machine of clients to the servers' machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.place import MACHINE, MACHINE2
from twinbed.model.topology import Topology

SWITCH = "switch0"
DEVICES = ("eth0", "eth1")
"""Names of a host's NICs on the host; a router has two."""
UPLINK = ("uplink0", "uplink1")
_FIRST_OF_A_ROUTED_NETWORK = 10


@dataclass(frozen=True, slots=True)
class Switch:
    name: str
    machine: str


@dataclass(frozen=True, slots=True)
class Nic:
    """A host's NIC, and the port at the other end of its link."""

    host: str
    device: str
    port: str
    switch: str
    machine: str
    address: str
    """IPv4, with the length of the prefix."""
    mac_prefix: str | None = None
    """The first three bytes of the hardware address; None is locally administered."""

    @property
    def mac(self) -> str:
        """Return the hardware address; its last bytes are those of the IPv4 address, which no other NIC of the lab has."""
        ipv4 = [f"{int(part):02x}" for part in self.address.partition("/")[0].split(".")]
        return ":".join([self.mac_prefix, *ipv4[1:]] if self.mac_prefix else ["02", "00", *ipv4])


@dataclass(frozen=True, slots=True)
class Layout:
    switches: tuple[Switch, ...]
    nics: Mapping[str, tuple[Nic, ...]]
    """Host -> its NICs: one, or a router's two (towards the clients, towards the servers)."""
    routes: Mapping[str, tuple[tuple[str, str], ...]]
    """Host -> (network, next hop)."""
    routers: tuple[str, ...]
    bystanders: frozenset[str]
    """Hosts that take no part in the workload."""
    trunks: tuple[tuple[str, str], ...] = ()
    """(Machine of clients, machine of servers) of each trunk, in the order of their numbers."""
    uplink: tuple[str, str] | None = None
    """The two ends of the link between the first and the second switch of one machine."""

    @property
    def addresses(self) -> dict[str, str]:
        """Return client or server -> IPv4 address."""
        return {host: nics[0].address.partition("/")[0] for host, nics in self.nics.items() if host not in self.routers}

    @property
    def machines(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(switch.machine for switch in self.switches))


def layout(topology: Topology) -> Layout:
    return _routed(topology) if topology.routers else _switched(topology)


def client_machine(number: int) -> str:
    """Return the name of a group's machine: the first is the lab's own, and the second always the servers'."""
    return MACHINE if number == 0 else f"{MACHINE}{number + 2}"


def port(host: str, device: str = DEVICES[0]) -> str:
    """Return the name of the switch's end of a link, at most 15 bytes."""
    return f"p.{host}" if device == DEVICES[0] else f"p.{host}.{device[-1]}"


def _nic(host: str, switch: Switch, address: str, device: str = DEVICES[0]) -> Nic:
    return Nic(host, device, port(host, device), switch.name, switch.machine, f"{address}/24")


def _switched(topology: Topology) -> Layout:
    clients = [Switch(SWITCH, client_machine(number)) for number in range(topology.client_machines)]
    servers = clients[0] if topology.trunk == "none" else Switch(SWITCH, MACHINE2)
    if topology.kind == "star":
        servers = Switch("switch1", MACHINE)
    nics: dict[str, tuple[Nic, ...]] = {}
    for number, host in enumerate(topology.role_hosts, start=1):
        nics[host] = (_nic(host, servers, f"10.77.0.{number}"),)
    pairs = topology.bystander_names() if topology.role_hosts else _every_pair(topology)
    for pair, (client, server) in enumerate(pairs, start=1 if topology.role_hosts else 0):
        nics[client] = (_nic(client, clients[pair % len(clients)], f"10.77.{pair}.1"),)
        nics[server] = (_nic(server, servers, f"10.77.{pair}.2"),)
    trunks = tuple((switch.machine, servers.machine) for switch in clients) if topology.trunk != "none" else ()
    uplink = UPLINK if topology.kind == "star" else None
    return Layout(
        tuple(dict.fromkeys((clients[0], servers, *clients[1:]))), nics, {}, (), _bystanders(topology), trunks, uplink
    )


def _routed(topology: Topology) -> Layout:
    last = topology.routers
    switches = tuple(Switch(f"switch{number}", MACHINE) for number in range(last + 1))
    nics: dict[str, tuple[Nic, ...]] = {}
    routes: dict[str, tuple[tuple[str, str], ...]] = {}
    near, far = "10.78.0.0/24", f"10.78.{last}.0/24"
    for pair, (client, server) in enumerate(_every_pair(topology)):
        nics[client] = (_nic(client, switches[0], f"10.78.0.{_FIRST_OF_A_ROUTED_NETWORK + pair}"),)
        nics[server] = (_nic(server, switches[-1], f"10.78.{last}.{_FIRST_OF_A_ROUTED_NETWORK + pair}"),)
        routes[client] = ((far, "10.78.0.2"),)
        routes[server] = ((near, f"10.78.{last}.1"),)
    for number, router in enumerate(topology.router_names(), start=1):
        nics[router] = (
            _nic(router, switches[number - 1], f"10.78.{number - 1}.2"),
            _nic(router, switches[number], f"10.78.{number}.1", DEVICES[1]),
        )
        towards_servers = ((far, f"10.78.{number}.2"),) if number < last else ()
        towards_clients = ((near, f"10.78.{number - 1}.1"),) if number > 1 else ()
        routes[router] = towards_clients + towards_servers
    return Layout(switches, nics, routes, tuple(topology.router_names()), _bystanders(topology))


def _every_pair(topology: Topology) -> Sequence[tuple[str, str]]:
    return (*topology.names(), *topology.bystander_names())


def _bystanders(topology: Topology) -> frozenset[str]:
    return frozenset(name for pair in topology.bystander_names() for name in pair)
