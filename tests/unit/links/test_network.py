"""Plans of links as exact iproute2 text, and their names."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest

from twinbed.contracts.host_settings import LabHostSettings
from twinbed.hosts.error import HostError
from twinbed.links import bridge, network
from twinbed.links.device import Device, Port
from twinbed.links.layout import DEVICES, layout
from twinbed.model.topology import Link, Topology

IFNAMSIZ = 16
"""linux/if.h, with the closing zero byte."""


CLIENT, SERVER = (layout(Topology()).nics[host][0] for host in ("client", "server"))


def test_the_switch() -> None:
    assert bridge.switch("switch0") == (
        "link add switch0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0\nlink set switch0 up\n"
    )
    assert bridge.join("p.client", "switch0") == "link set p.client master switch0\n"


def test_a_container_gets_a_veth_pair() -> None:
    assert bridge.veth(CLIENT, 1400, 4711) == (
        "link add p.client mtu 1400 type veth peer name eth0 mtu 1400 netns 4711\nlink set p.client up\n"
    )


def test_a_vendor_changes_the_first_three_bytes_of_hardware_addresses() -> None:
    """10.77.0.1: the last three bytes are those of the address, 0a 4d 00 01 without the first."""
    assert CLIENT.mac == "02:00:0a:4d:00:01"
    assert replace(CLIENT, mac_prefix="52:54:00").mac == "52:54:00:4d:00:01"
    assert replace(SERVER, mac_prefix="52:54:00").mac == "52:54:00:4d:00:02"


@pytest.mark.parametrize("prefix", ["52:54", "53:54:00", "52:54:0G", "52:54:00:01", "52-54-00"])
def test_what_is_no_vendor_is_refused(prefix: str) -> None:
    """53 is odd: addresses of groups (IEEE 802)."""
    with pytest.raises(ValueError, match="mac_prefix"):
        LabHostSettings(mac_prefix=prefix)


def test_a_guest_gets_a_tap() -> None:
    assert bridge.tap(SERVER, 1500) == "tuntap add dev p.server mode tap vnet_hdr\nlink set p.server mtu 1500 up\n"
    assert "mode tap vnet_hdr multi_queue\n" in bridge.tap(SERVER, 1500, queues=2)


def test_the_hosts_own_end() -> None:
    nic = layout(Topology(pairs=4)).nics["server4"][0]
    plan = "link set eth0 address 02:00:0a:4d:03:02 mtu 1500\naddr add 10.77.3.2/24 dev eth0\n"
    assert bridge.address(nic, 1500, up=False) == f"{plan}link set eth0 up\n"
    assert bridge.address(nic, 1500, up=True) == plan


TOPOLOGIES = [
    *(Topology(pairs=pairs) for pairs in (1, 2, 10, 80)),
    Topology(pairs=80, trunk="vxlan"),
    Topology(pairs=80, trunk="vxlan", client_machines=80),
    Topology(pairs=7, trunk="plain", client_machines=3),
    Topology(pairs=3, trunk="plain", client_machines=2, bystanders=3),
    Topology(kind="star", pairs=80, uplink="1gbit"),
    *(Topology(pairs=pairs, routers=routers) for pairs in (1, 80) for routers in (1, 2, 16)),
    Topology(bystanders=1),
    Topology(kind="star", pairs=80, bystanders=80),
    Topology(trunk="plain", pairs=2, bystanders=3),
    Topology(pairs=80, bystanders=80, routers=2),
]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_names_and_addresses_are_distinct_and_fit(topology: Topology) -> None:
    plan = layout(topology)
    nics = [nic for each in plan.nics.values() for nic in each]
    assert len(nics) == 2 * (topology.pairs + topology.bystanders + topology.routers)
    names = [*(nic.port for nic in nics), *(switch.name for switch in plan.switches)]
    assert len({*names, *DEVICES}) == len(nics) + len({switch.name for switch in plan.switches}) + 2
    assert all(len(name.encode()) < IFNAMSIZ for name in names)
    assert len({nic.address for nic in nics}) == len({nic.mac for nic in nics}) == len(nics)
    assert all(int(nic.mac[:2], 16) & 0b11 == 0b10 for nic in nics), "locally administered, not multicast (IEEE 802)"
    assert all(ipaddress.ip_interface(nic.address).is_private for nic in nics)
    assert {nic.switch for nic in nics} == {switch.name for switch in plan.switches}


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_every_client_finds_its_server_and_back(topology: Topology) -> None:
    """Walk from host to host by the routes alone."""
    plan = layout(topology)
    owner = {ipaddress.ip_interface(nic.address).ip: host for host, nics in plan.nics.items() for nic in nics}

    def next_hop(host: str, to: ipaddress.IPv4Address) -> ipaddress.IPv4Address:
        if any(to in ipaddress.ip_interface(nic.address).network for nic in plan.nics[host]):
            return to
        via = next(hop for network, hop in plan.routes[host] if to in ipaddress.ip_network(network))
        gateway = ipaddress.IPv4Address(via)
        assert any(gateway in ipaddress.ip_interface(nic.address).network for nic in plan.nics[host]), "on a link of its own"
        return gateway

    for pair in (*topology.names(), *topology.bystander_names()):
        for here, there in (pair, pair[::-1]):
            path, to = [here], ipaddress.IPv4Address(plan.addresses[there])
            while path[-1] != there:
                path.append(owner[next_hop(path[-1], to)])
                assert len(path) <= topology.routers + 2
            assert len(path) == topology.routers + 2, "through every router"


def test_a_star_has_a_switch_at_either_end_of_its_uplink() -> None:
    plan = layout(Topology(kind="star", pairs=2, uplink="100mbit"))
    assert [nics[0].switch for nics in plan.nics.values()] == ["switch0", "switch1"] * 2
    assert plan.uplink == ("uplink0", "uplink1")
    assert bridge.pair("uplink0", "uplink1", 1500) == (
        "link add uplink0 mtu 1500 type veth peer name uplink1 mtu 1500\nlink set uplink0 up\nlink set uplink1 up\n"
    )


def test_bystanders_leave_the_workloads_hosts_as_they_are() -> None:
    alone, beside = layout(Topology(kind="star", pairs=2)), layout(Topology(kind="star", pairs=2, bystanders=2))
    assert {host: nics for host, nics in beside.nics.items() if host not in beside.bystanders} == alone.nics
    assert beside.bystanders == {"otherclient1", "otherclient2", "otherserver1", "otherserver2"}
    assert [beside.nics[f"other{role}2"][0].switch for role in ("client", "server")] == ["switch0", "switch1"]
    assert alone.bystanders == frozenset()


def test_two_machines_have_a_switch_each() -> None:
    plan = layout(Topology(trunk="plain"))
    assert plan.machines == ("machine", "machine2")
    assert [(host, nics[0].machine) for host, nics in plan.nics.items()] == [("client", "machine"), ("server", "machine2")]


def test_clients_are_spread_in_turn_and_servers_stay_together() -> None:
    plan = layout(Topology(pairs=5, trunk="plain", client_machines=3))
    assert plan.machines == ("machine", "machine2", "machine3", "machine4")
    assert {switch.name for switch in plan.switches} == {"switch0"} and len(plan.switches) == 4
    where = {host: nic.machine for host, (nic,) in plan.nics.items()}
    assert {where[f"server{number}"] for number in range(1, 6)} == {"machine2"}
    clients = [where[f"client{number}"] for number in range(1, 6)]
    assert clients == ["machine", "machine3", "machine4", "machine", "machine3"]
    assert plan.trunks == (("machine", "machine2"), ("machine3", "machine2"), ("machine4", "machine2"))


def test_addresses_do_not_hang_on_where_clients_are() -> None:
    one, several = (layout(Topology(pairs=6, trunk="gre", client_machines=machines)) for machines in (1, 6))
    assert one.addresses == several.addresses
    assert len(layout(Topology(trunk="gre")).trunks) == 1 and layout(Topology()).trunks == ()


def port_of(**changes: object) -> Device:
    facts = {"name": "p.client", "kind": "veth", "master": "switch0", "mtu": 1500, "up": True, "carrier": True, "mac": ""}
    facts |= {"addresses": ()}
    return Device(**{**facts, "details": {}, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (port_of(), set()),
        (port_of(kind="tun"), {"kind"}),
        (port_of(mtu=1499), {"mtu"}),
        (port_of(up=False), {"up"}),
        (port_of(name="p.server"), {"kind", "mtu", "up"}),
    ],
)
def test_a_port_that_is_not_as_asked_disagrees(found: Device, wrong: set[str]) -> None:
    applied = bridge.applied_port(CLIENT, 1500, "veth", [found])
    assert {item.setting for item in applied if not item.agrees} == wrong


@pytest.mark.parametrize("master", [None, "switch1"])
def test_a_port_of_another_switch_disagrees(master: str | None) -> None:
    assert all(item.agrees for item in bridge.applied_joined(Port(CLIENT.port, CLIENT.switch), [port_of()]))
    assert not any(item.agrees for item in bridge.applied_joined(Port(CLIENT.port, CLIENT.switch), [port_of(master=master)]))


def test_a_switch_that_is_not_as_asked_disagrees() -> None:
    quiet = {"stp_state": 0, "mcast_snooping": 0}
    good = port_of(name="switch0", kind="bridge", details=quiet)
    assert all(item.agrees for item in bridge.applied_switch("switch0", [good]))
    noisy = port_of(name="switch0", kind="bridge", details={"stp_state": 1, "mcast_snooping": 1})
    assert [item.setting for item in bridge.applied_switch("switch0", [noisy]) if not item.agrees] == [
        "spanning_tree",
        "multicast_snooping",
    ]
    assert not any(item.agrees for item in bridge.applied_switch("switch0", []))


class Babbler:
    """A host whose tools say something else."""

    name = "client"

    def run(self, argv: object, **_: object) -> object:
        return type("Said", (), {"stdout": b"RTNETLINK answers", "text": "RTNETLINK answers"})


def test_a_tool_that_cannot_be_understood_fails_the_run_with_its_text() -> None:
    with pytest.raises(HostError, match=r"client: .*did not print devices.*RTNETLINK answers"):
        network.devices_of(Babbler())  # type: ignore[arg-type]
    for call in (
        lambda: network.applied_shaping(Babbler(), "eth0", Link()),  # type: ignore[arg-type]
        lambda: network.applied_routes(Babbler(), [("10.0.0.0/24", "10.0.1.1")], forwards=False),  # type: ignore[arg-type]
    ):
        with pytest.raises(HostError, match=r"client: "):
            call()
