"""What joins the switches of two machines: a cable between them, and on it plain frames, tagged ones, or a tunnel.  Pure.

The cable is a veth pair.  A tunnel's ends are 10.79.0.1 and 10.79.0.2; the cable then carries packets that are longer by the
tunnel's headers, so that what hosts send need not be shorter.  Only ``trunk: vlan`` tags what is on the cable; elsewhere frames
of the hosts' VLAN go without a tag.

Headers: RFC 7348 (VXLAN), RFC 2784 and RFC 2890 (GRE with a key), IEEE 802.1Q.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.links.device import Device
from twinbed.links.layout import SWITCH
from twinbed.links.ports import Port
from twinbed.model.plugin import MACHINE, MACHINE2, Applied
from twinbed.model.topology import Topology

CABLE = "trunk0"
TUNNEL = "tunnel0"
KEY = 79
"""GRE's key, and VXLAN's network identifier."""
VXLAN_PORT = 4789
DEFAULT_VLAN = 77
_IPV4, _UDP, _VXLAN, _GRE_WITH_KEY, _ETHERNET = 20, 8, 8, 8, 14
HEADERS = {"gre": _IPV4 + _GRE_WITH_KEY + _ETHERNET, "vxlan": _IPV4 + _UDP + _VXLAN + _ETHERNET}
"""Bytes that a tunnel puts around an IP packet of a host, within the cable's own frame."""
_ENDS = {MACHINE: 1, MACHINE2: 2}
_PREFIX = 30


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel as one machine sees it."""

    kind: str
    number: int

    @property
    def local(self) -> str:
        return f"10.79.0.{self.number}"

    @property
    def remote(self) -> str:
        return f"10.79.0.{3 - self.number}"

    @property
    def local_mac(self) -> str:
        return f"02:00:0a:4f:00:0{self.number}"

    @property
    def remote_mac(self) -> str:
        return f"02:00:0a:4f:00:0{3 - self.number}"


def tunnel(topology: Topology, machine: str) -> Tunnel | None:
    """The machine's end, where the trunk is a tunnel."""
    return Tunnel(topology.trunk, _ENDS[machine]) if topology.trunk in HEADERS else None


def vlan(topology: Topology) -> int | None:
    """The VLAN that hosts' ports are in: a trunk of tagged frames needs one."""
    return DEFAULT_VLAN if topology.vlan is None and topology.trunk == "vlan" else topology.vlan


def mtu(topology: Topology) -> int:
    """The cable's."""
    return topology.link.mtu + HEADERS.get(topology.trunk, 0)


def port(topology: Topology) -> Port:
    """What of the trunk is a port of each machine's switch."""
    if topology.trunk == "vlan":
        return Port(CABLE, SWITCH, tagged=vlan(topology))
    return Port(TUNNEL if topology.trunk in HEADERS else CABLE, SWITCH, access=vlan(topology))


def cable(mtu: int, other_machine_pid: int) -> str:
    """Run on the first machine: the second is named by a process of it."""
    return f"link add {CABLE} mtu {mtu} type veth peer name {CABLE} mtu {mtu} netns {other_machine_pid}\n{up(CABLE)}"


def up(device: str) -> str:
    return f"link set {device} up\n"


def address(device: str, end: Tunnel, mtu: int) -> str:
    """A tunnel's end on the device that it goes out by."""
    return f"link set {device} mtu {mtu}\naddr add {end.local}/{_PREFIX} dev {device}\n{up(device)}"


def tunnel_device(end: Tunnel, mtu: int) -> str:
    """A tunnel that the kernel makes, whose packets have room for ``mtu``."""
    ends = f"local {end.local} remote {end.remote} dev {CABLE}"
    kind = f"vxlan id {KEY} {ends} dstport {VXLAN_PORT}" if end.kind == "vxlan" else f"gretap {ends} key {KEY}"
    return f"link add {TUNNEL} mtu {mtu} type {kind}\n{up(TUNNEL)}"


def applied_cable(mtu: int, devices: Sequence[Device]) -> list[Applied]:
    source = "ip -j -d link show"
    found = _named(CABLE, devices)
    return [
        Applied(CABLE, "kind", "veth", found and found.kind, source),
        Applied(CABLE, "mtu", mtu, found and found.mtu, source),
        Applied(CABLE, "up", True, found and found.up, source),
        Applied(CABLE, "carrier", True, found and found.carrier, source),
    ]


def applied_end(device: str, end: Tunnel, mtu: int, devices: Sequence[Device]) -> list[Applied]:
    """Of the device that a tunnel goes out by."""
    found = _named(device, devices)
    source = "ip -j -d addr show"
    first = found.addresses[0] if found and found.addresses else None
    return [
        Applied(device, "address", f"{end.local}/{_PREFIX}", first, source),
        Applied(device, "mtu", mtu, found and found.mtu, source),
    ]


def applied_tunnel_device(end: Tunnel, mtu: int, devices: Sequence[Device]) -> list[Applied]:
    found = _named(TUNNEL, devices)
    source = "ip -j -d link show"
    details = found.details if found else {}
    if end.kind == "vxlan":
        own = [
            Applied(TUNNEL, "key", KEY, details.get("id"), source),
            Applied(TUNNEL, "udp_port", VXLAN_PORT, details.get("port"), source),
        ]
    else:
        dotted = f"0.0.0.{KEY}"  # as iproute2 prints a key
        own = [Applied(TUNNEL, name, dotted, details.get(name), source) for name in ("ikey", "okey")]
    return [
        Applied(TUNNEL, "kind", "vxlan" if end.kind == "vxlan" else "gretap", found and found.kind, source),
        Applied(TUNNEL, "local", end.local, details.get("local"), source),
        Applied(TUNNEL, "remote", end.remote, details.get("remote"), source),
        Applied(TUNNEL, "mtu", mtu, found and found.mtu, source),
        Applied(TUNNEL, "up", True, found and found.up, source),
        *own,
    ]


def options(end: Tunnel) -> Mapping[str, str]:
    """Of the tunnel as a port of Open vSwitch."""
    return {"local_ip": end.local, "remote_ip": end.remote, "key": str(KEY)}


def _named(name: str, devices: Sequence[Device]) -> Device | None:
    return next((device for device in devices if device.name == name), None)
