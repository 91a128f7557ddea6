"""Plans of links as exact iproute2 text, and their names."""

from __future__ import annotations

import ipaddress

import pytest

from twinbed.hosts.error import HostError
from twinbed.links import bridge, network
from twinbed.links.device import Device
from twinbed.model.hostsettings import HostSettings
from twinbed.model.topology import Link, Topology

IFNAMSIZ = 16
"""linux/if.h, with the closing zero byte."""


def test_the_switch() -> None:
    assert bridge.switch() == (
        "link add switch0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0\nlink set switch0 up\n"
    )


def test_a_container_gets_a_veth_pair() -> None:
    assert bridge.veth("client", 1400, 4711) == (
        "link add p.client mtu 1400 type veth peer name eth0 mtu 1400 netns 4711\nlink set p.client master switch0 up\n"
    )


def test_a_guest_gets_a_tap() -> None:
    assert bridge.tap("server", 1500) == (
        "tuntap add dev p.server mode tap vnet_hdr\nlink set p.server mtu 1500 master switch0 up\n"
    )


def test_the_hosts_own_end() -> None:
    assert bridge.address("10.77.3.2/24", 1500, "02:00:0a:4d:03:02") == (
        "link set eth0 address 02:00:0a:4d:03:02 mtu 1500\naddr add 10.77.3.2/24 dev eth0\nlink set eth0 up\n"
    )


@pytest.mark.parametrize("pairs", [1, 2, 10, 80])
def test_names_and_addresses_are_distinct_and_fit(pairs: int) -> None:
    topology = Topology(pairs=pairs)
    addresses = network.addresses(topology)
    assert len(addresses) == 2 * pairs
    ports = [bridge.port(host) for host in addresses]
    assert len({*ports, bridge.SWITCH, bridge.HOST_DEVICE}) == 2 * pairs + 2
    assert all(len(port.encode()) < IFNAMSIZ for port in ports)
    macs = [network.mac(address) for address in addresses.values()]
    assert len(set(macs)) == 2 * pairs
    assert all(int(mac[:2], 16) & 0b11 == 0b10 for mac in macs), "locally administered, not multicast (IEEE 802)"
    for client, server in topology.names():
        assert ipaddress.ip_interface(f"{addresses[client]}/24").network == ipaddress.ip_network(
            f"{addresses[server]}/24", False
        )
    assert len({ipaddress.ip_interface(f"{address}/24").network for address in addresses.values()}) == pairs
    assert all(ipaddress.ip_address(address).is_private for address in addresses.values())


def test_a_hardware_address_follows_from_the_address() -> None:
    assert network.mac("10.77.79.2") == "02:00:0a:4d:4f:02"


def port_of(**changes: object) -> Device:
    facts = {"name": "p.client", "kind": "veth", "master": "switch0", "mtu": 1500, "up": True, "carrier": True, "mac": ""}
    facts |= {"addresses": ()}
    return Device(**{**facts, "details": {}, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (port_of(), set()),
        (port_of(kind="tun"), {"kind"}),
        (port_of(master=None), {"master"}),
        (port_of(mtu=1499), {"mtu"}),
        (port_of(up=False), {"up"}),
        (port_of(name="p.server"), {"kind", "master", "mtu", "up"}),
    ],
)
def test_a_port_that_is_not_as_asked_disagrees(found: Device, wrong: set[str]) -> None:
    applied = bridge.applied_port("client", 1500, "veth", [found])
    assert {item.setting for item in applied if not item.agrees} == wrong


def test_a_switch_that_is_not_as_asked_disagrees() -> None:
    quiet = {"stp_state": 0, "mcast_snooping": 0}
    good = port_of(name="switch0", kind="bridge", details=quiet)
    assert all(item.agrees for item in bridge.applied_switch([good]))
    noisy = port_of(name="switch0", kind="bridge", details={"stp_state": 1, "mcast_snooping": 1})
    assert [item.setting for item in bridge.applied_switch([noisy]) if not item.agrees] == [
        "spanning_tree",
        "multicast_snooping",
    ]
    assert not any(item.agrees for item in bridge.applied_switch([]))


class Babbler:
    """A host whose tools say something else."""

    name = "client"

    def run(self, argv: object, **_: object) -> object:
        return type("Said", (), {"stdout": b"RTNETLINK answers", "text": "RTNETLINK answers"})


def test_a_tool_that_cannot_be_understood_fails_the_run_with_its_text() -> None:
    for call in (
        lambda: network.applied_on_machine(Babbler(), {"client": "veth"}, Topology(link=Link())),  # type: ignore[arg-type]
        lambda: network.applied_on_host(Babbler(), "10.77.0.1", Topology(), HostSettings()),  # type: ignore[arg-type]
    ):
        with pytest.raises(HostError, match=r"client: .*something else than devices.*RTNETLINK answers"):
            call()
