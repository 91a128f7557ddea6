"""The Linux bridge as a switch, and the two kinds of link to a switch: a veth pair to a container, a tap to a guest.

Plans are iproute2 batch text.  Spanning tree, multicast snooping and the forwarding delay are off, so that the switch itself
sends nothing; IPv6 is off for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from twinbed.contracts.bed import Applied
from twinbed.links.device import Device, Port
from twinbed.links.layout import Nic

QUIET = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")


VLANS = ("bridge", "-j", "vlan", "show")


class _Vlan(TypedDict):
    vlan: int
    flags: NotRequired[Sequence[str]]


class ShownVlans(TypedDict):
    """A port as VLANS prints it."""

    ifname: str
    vlans: Sequence[_Vlan]


def switch(name: str, *, vlans: bool = False) -> str:
    """Plan a switch. With ``vlans`` a port is in no VLAN until it is put into one."""
    filtering = " vlan_filtering 1 vlan_default_pvid 0" if vlans else ""
    return f"link add {name} type bridge stp_state 0 forward_delay 0 mcast_snooping 0{filtering}\nlink set {name} up\n"


def join(port: str, switch: str) -> str:
    """Plan to make a device a port of the switch."""
    return f"link set {port} master {switch}\n"


def vlan(port: Port) -> str:
    """Plan a port's VLAN, as batch text of `bridge`; empty for a port without VLANs."""
    if port.access is not None:
        return f"vlan add dev {port.device} vid {port.access} pvid untagged\n"
    return f"vlan add dev {port.device} vid {port.tagged}\n" if port.tagged is not None else ""


def veth(nic: Nic, mtu: int, namespace_pid: int) -> str:
    """Plan a link to the network namespace of a process."""
    pair = f"link add {nic.port} mtu {mtu} type veth peer name {nic.device} mtu {mtu} netns {namespace_pid}\n"
    return f"{pair}link set {nic.port} up\n"


def pair(first: str, second: str, mtu: int) -> str:
    """Plan the link between two switches of one machine."""
    made = f"link add {first} mtu {mtu} type veth peer name {second} mtu {mtu}\n"
    return f"{made}link set {first} up\nlink set {second} up\n"


def tap(nic: Nic, mtu: int, queues: int = 1) -> str:
    """Plan a link to a guest's NIC; QEMU opens the tap by its name, once for each queue."""
    many = " multi_queue" if queues > 1 else ""
    return f"tuntap add dev {nic.port} mode tap vnet_hdr{many}\nlink set {nic.port} mtu {mtu} up\n"


def address(nic: Nic, mtu: int, *, up: bool) -> str:
    """Plan the hardware address, MTU and IP address of a host's NIC. A NIC that is ``up`` is not brought up again: QEMU's e1000
    would receive nothing for a second."""
    device = f"link set {nic.device} address {nic.mac} mtu {mtu}\n"
    return f"{device}addr add {nic.address} dev {nic.device}\n" + ("" if up else f"link set {nic.device} up\n")


def applied_switch(name: str, devices: Sequence[Device], *, vlans: bool = False) -> list[Applied]:
    source = f"ip -j -d link show dev {name}"
    actual = next((device for device in devices if device.name == name), None)
    return [
        Applied(name, "kind", "bridge", actual and actual.kind, source),
        Applied(name, "spanning_tree", 0, actual and actual.details.get("stp_state"), source),
        Applied(name, "multicast_snooping", 0, actual and actual.details.get("mcast_snooping"), source),
        *([Applied(name, "vlan_filtering", 1, actual and actual.details.get("vlan_filtering"), source)] if vlans else []),
    ]


def applied_joined(port: Port, devices: Sequence[Device]) -> list[Applied]:
    actual = next((device for device in devices if device.name == port.device), None)
    return [Applied(port.device, "master", port.switch, actual and actual.master, "ip -j -d link show")]


def applied_vlan(port: Port, shown: Sequence[ShownVlans]) -> list[Applied]:
    """Read back a port's VLANs from what VLANS printed."""
    vlans = [entry for device in shown if device["ifname"] == port.device for entry in device["vlans"]]
    untagged = [entry["vlan"] for entry in vlans if "Egress Untagged" in entry.get("flags", ())]
    own = [entry["vlan"] for entry in vlans if "PVID" in entry.get("flags", ())]
    tagged = [entry["vlan"] for entry in vlans if "Egress Untagged" not in entry.get("flags", ())]
    source = " ".join(VLANS)
    access = [port.access] if port.access is not None else []
    return [
        Applied(port.device, "vlan", access, untagged, source),
        Applied(port.device, "pvid", access, own, source),
        Applied(port.device, "tagged_vlan", [port.tagged] if port.tagged is not None else [], tagged, source),
    ]


def applied_port(nic: Nic, mtu: int, kind: str, devices: Sequence[Device]) -> list[Applied]:
    """Read back a port's device, whatever switch it is on."""
    source = "ip -j -d link show"
    actual = next((device for device in devices if device.name == nic.port), None)
    return [
        Applied(nic.port, "kind", kind, actual and actual.kind, source),
        Applied(nic.port, "mtu", mtu, actual and actual.mtu, source),
        Applied(nic.port, "up", True, actual and actual.up, source),
    ]
