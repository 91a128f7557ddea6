"""The Linux bridge as a switch, and the two kinds of link to it: a veth pair to a container, a tap to a guest.

Plans are iproute2 batch text.  Spanning tree and multicast snooping are off and forwarding is at once, so that the switch
sends nothing of its own; IPv6 is off for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.links.device import Device
from twinbed.model.plugin import Applied

SWITCH = "switch0"
HOST_DEVICE = "eth0"
QUIET = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")


def switch() -> str:
    return f"link add {SWITCH} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\nlink set {SWITCH} up\n"


def port(host: str) -> str:
    """The name of the switch's end of a host's link: at most 15 bytes."""
    return f"p.{host}"[:15]


def veth(host: str, mtu: int, namespace_pid: int) -> str:
    """A link to the network namespace of a process, where its end is named eth0."""
    end = port(host)
    return (
        f"link add {end} mtu {mtu} type veth peer name {HOST_DEVICE} mtu {mtu} netns {namespace_pid}\n"
        f"link set {end} master {SWITCH} up\n"
    )


def tap(host: str, mtu: int) -> str:
    """A link to a guest's NIC; QEMU opens the tap by its name."""
    end = port(host)
    return f"tuntap add dev {end} mode tap vnet_hdr\nlink set {end} mtu {mtu} master {SWITCH} up\n"


def address(cidr: str, mtu: int, mac: str) -> str:
    """On the host itself: its NIC's hardware address, MTU and IP address."""
    return f"link set {HOST_DEVICE} address {mac} mtu {mtu}\naddr add {cidr} dev {HOST_DEVICE}\nlink set {HOST_DEVICE} up\n"


def applied_switch(devices: Sequence[Device]) -> list[Applied]:
    source = f"ip -j -d link show dev {SWITCH}"
    found = next((device for device in devices if device.name == SWITCH), None)
    return [
        Applied(SWITCH, "kind", "bridge", found and found.kind, source),
        Applied(SWITCH, "spanning_tree", 0, found and found.details.get("stp_state"), source),
        Applied(SWITCH, "multicast_snooping", 0, found and found.details.get("mcast_snooping"), source),
    ]


def applied_port(host: str, mtu: int, kind: str, devices: Sequence[Device]) -> list[Applied]:
    end = port(host)
    source = "ip -j -d link show"
    found = next((device for device in devices if device.name == end), None)
    return [
        Applied(end, "kind", kind, found and found.kind, source),
        Applied(end, "master", SWITCH, found and found.master, source),
        Applied(end, "mtu", mtu, found and found.mtu, source),
        Applied(end, "up", True, found and found.up, source),
    ]
