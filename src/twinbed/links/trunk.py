"""The trunk between the switches of two machines: a cable that carries plain frames, tagged ones, or a tunnel. Pure.

The cable of trunk t is a veth pair, trunk<t> at either end.  A tunnel's ends are 10.79.t.1 at the clients' machine and
10.79.t.2 at the servers'. The cable then carries packets that are longer by the tunnel's headers, so hosts can send packets of
full size.  Only ``trunk: vlan`` tags frames on the cable; elsewhere frames of the hosts' VLAN have no tag.

Headers: RFC 7348 (VXLAN), RFC 2784 and RFC 2890 (GRE with a key), IEEE 802.1Q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.contracts.bed import Applied
from twinbed.contracts.place import MACHINE2
from twinbed.links.device import Device, Port
from twinbed.links.layout import SWITCH
from twinbed.model.topology import Topology

KEY = 79
"""GRE's key and VXLAN's network identifier of the first trunk. Each trunk has its own: a kernel refuses a second VXLAN with the
same one."""
VXLAN_PORT = 4789
DEFAULT_VLAN = 77
_IPV4, _UDP, _VXLAN, _GRE_WITH_KEY, _ETHERNET = 20, 8, 8, 8, 14
HEADERS = {"gre": _IPV4 + _GRE_WITH_KEY + _ETHERNET, "vxlan": _IPV4 + _UDP + _VXLAN + _ETHERNET}
"""Bytes that a tunnel adds to a host's IP packet within the cable's frame."""
_PREFIX = 30


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel as one machine sees it."""

    kind: str
    number: int
    """The end: 1 at the clients' machine, 2 at the servers'."""
    trunk: int
    """The trunk's number."""

    @property
    def device(self) -> str:
        return f"tunnel{self.trunk}"

    @property
    def cable(self) -> str:
        return cable_of(self.trunk)

    @property
    def key(self) -> int:
        return KEY + self.trunk

    @property
    def local(self) -> str:
        return f"10.79.{self.trunk}.{self.number}"

    @property
    def remote(self) -> str:
        return f"10.79.{self.trunk}.{3 - self.number}"

    @property
    def local_mac(self) -> str:
        return f"02:00:0a:4f:{self.trunk:02x}:0{self.number}"

    @property
    def remote_mac(self) -> str:
        return f"02:00:0a:4f:{self.trunk:02x}:0{3 - self.number}"


def cable_of(trunk: int) -> str:
    """Return the device at either end of a trunk's cable."""
    return f"trunk{trunk}"


def tunnel(topology: Topology, trunk: int, machine: str) -> Tunnel | None:
    """Return the machine's end of a trunk; None where the trunk is not a tunnel."""
    return Tunnel(topology.trunk, 2 if machine == MACHINE2 else 1, trunk) if topology.trunk in HEADERS else None


def vlan(topology: Topology) -> int | None:
    """Return the VLAN of hosts' ports: a trunk of tagged frames needs one."""
    return DEFAULT_VLAN if topology.vlan is None and topology.trunk == "vlan" else topology.vlan


def mtu(topology: Topology) -> int:
    """Return a cable's MTU."""
    return topology.link.mtu + HEADERS.get(topology.trunk, 0)


def port(topology: Topology, trunk: int, machine: str) -> Port:
    """Return the part of a trunk that is a port of the machine's switch."""
    if topology.trunk == "vlan":
        return Port(cable_of(trunk), SWITCH, tagged=vlan(topology))
    end = tunnel(topology, trunk, machine)
    return Port(end.device if end else cable_of(trunk), SWITCH, access=vlan(topology))


def cable(trunk: int, mtu: int, other_machine_pid: int) -> str:
    """Plan a cable, on one machine; a process names the other machine."""
    name = cable_of(trunk)
    return f"link add {name} mtu {mtu} type veth peer name {name} mtu {mtu} netns {other_machine_pid}\n{up(name)}"


def up(device: str) -> str:
    return f"link set {device} up\n"


def address(device: str, end: Tunnel, mtu: int) -> str:
    """Plan a tunnel's address on the device by which it goes out."""
    return f"link set {device} mtu {mtu}\naddr add {end.local}/{_PREFIX} dev {device}\n{up(device)}"


def tunnel_device(end: Tunnel, mtu: int) -> str:
    """Plan a tunnel made by the kernel, whose packets have room for ``mtu``."""
    ends = f"local {end.local} remote {end.remote} dev {end.cable}"
    kind = f"vxlan id {end.key} {ends} dstport {VXLAN_PORT}" if end.kind == "vxlan" else f"gretap {ends} key {end.key}"
    return f"link add {end.device} mtu {mtu} type {kind}\n{up(end.device)}"


def applied_cable(trunk: int, mtu: int, devices: Sequence[Device]) -> list[Applied]:
    source = "ip -j -d link show"
    name = cable_of(trunk)
    actual = _named(name, devices)
    return [
        Applied(name, "kind", "veth", actual and actual.kind, source),
        Applied(name, "mtu", mtu, actual and actual.mtu, source),
        Applied(name, "up", True, actual and actual.up, source),
        Applied(name, "carrier", True, actual and actual.carrier, source),
    ]


def applied_end(device: str, end: Tunnel, mtu: int, devices: Sequence[Device]) -> list[Applied]:
    """Read back the device by which a tunnel goes out."""
    actual = _named(device, devices)
    source = "ip -j -d addr show"
    first = actual.addresses[0] if actual and actual.addresses else None
    return [
        Applied(device, "address", f"{end.local}/{_PREFIX}", first, source),
        Applied(device, "mtu", mtu, actual and actual.mtu, source),
    ]


def applied_tunnel_device(end: Tunnel, mtu: int, devices: Sequence[Device]) -> list[Applied]:
    actual = _named(end.device, devices)
    source = "ip -j -d link show"
    details = actual.details if actual else {}
    if end.kind == "vxlan":
        own = [
            Applied(end.device, "key", end.key, details.get("id"), source),
            Applied(end.device, "udp_port", VXLAN_PORT, details.get("port"), source),
        ]
    else:
        dotted = f"0.0.0.{end.key}"  # as iproute2 prints a key
        own = [Applied(end.device, name, dotted, details.get(name), source) for name in ("ikey", "okey")]
    return [
        Applied(end.device, "kind", "vxlan" if end.kind == "vxlan" else "gretap", actual and actual.kind, source),
        Applied(end.device, "local", end.local, details.get("local"), source),
        Applied(end.device, "remote", end.remote, details.get("remote"), source),
        Applied(end.device, "mtu", mtu, actual and actual.mtu, source),
        Applied(end.device, "up", True, actual and actual.up, source),
        *own,
    ]


def options(end: Tunnel) -> Mapping[str, str]:
    """Return the options of a tunnel as a port of Open vSwitch."""
    return {"local_ip": end.local, "remote_ip": end.remote, "key": str(end.key)}


def _named(name: str, devices: Sequence[Device]) -> Device | None:
    return next((device for device in devices if device.name == name), None)
