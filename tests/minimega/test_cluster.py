"""Nodes of a cluster: where guests are put, what joins them, and whose answer is whose."""

from __future__ import annotations

from pathlib import Path

import pytest

from minimega.standin import StandIn
from twinbed.hosts.error import HostError
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS
from twinbed.testbeds.minimega import driver, launch, shaping
from twinbed.testbeds.minimega.control import Control, Guest
from twinbed.testbeds.minimega.driver import captured
from twinbed.testbeds.minimega.head import open_head
from twinbed.testbeds.minimega.machine import machines
from twinbed.testbeds.minimega.space import own_space

DRIVER = PLUGINS.drivers["minimega"]


@pytest.mark.parametrize(("trunk", "nodes"), [("none", ["node1"]), ("gre", ["node1", "node2"]), ("plain", ["node1", "node2"])])
def test_the_nodes_of_a_cluster(server: StandIn, trunk: str, nodes: list[str]) -> None:
    """Where guests are, and what joins them; a stand-in has no second node to put real guests on."""
    server.nodes = ["node1", "node2"]
    params = DRIVER.params(base=str(server.base), kernel="/opt/k", nodes=nodes)
    topology = Topology(trunk=trunk)
    with open_head(str(server.base), None) as head, own_space(head, "twinbed") as own:
        bridge, applied = driver._network(own, params, topology)
        guests = launch.wanted(params, topology)
        launch.launch(own.socket, params, guests, bridge, 2)
        found = launch.await_clients(own.socket, Control(own.socket), guests)
        for guest in guests:
            applied += launch.applied(found[guest.name], params, guest, bridge)
        assert [item for item in applied if not item.agrees] == []
        assert [found[name].node for name in ("client", "server")] == [nodes[0], nodes[-1]]
        assert (bridge is not None) == (trunk == "gre")
        for name, machine in found.items():
            guest = Guest(name, machine.uuid, machine.node)
            assert Control(own.socket).run(guest, "echo", name, limit_s=30.0) == {"stdout": f"echo {name}\n"}


def test_clients_are_spread_over_nodes_and_servers_stay_on_one(server: StandIn) -> None:
    server.nodes = [f"node{number}" for number in range(1, 5)]
    params = DRIVER.params(base=str(server.base), kernel="/opt/k", nodes=server.nodes)
    topology = Topology(pairs=4, trunk="plain", client_machines=3)
    assert shaping.refusals(topology, params.nodes) == []
    with open_head(str(server.base), None) as head, own_space(head, "twinbed") as own:
        guests = launch.wanted(params, topology)
        launch.launch(own.socket, params, guests, None, 4)
        found = machines(own.socket)
        applied = [item for guest in guests for item in launch.applied(found[guest.name], params, guest, None)]
        node = {item.subject: item.found for item in applied if item.setting == "node"}
        assert node == {f"server{number}": "node2" for number in range(1, 5)} | {
            "client1": "node1",
            "client2": "node3",
            "client3": "node4",
            "client4": "node1",
        }
        assert [item for item in applied if item.setting == "node" and not item.agrees] == []


@pytest.mark.parametrize(
    ("trunk", "nodes", "says"),
    [
        ("plain", 3, "trunk: plain: it joins 4 nodes; name them in the testbed's nodes"),
        ("gre", 4, "client_machines: 3 with trunk: gre: minimega makes a tunnel between every two nodes"),
    ],
)
def test_clients_that_cannot_be_spread_so(trunk: str, nodes: int, says: str) -> None:
    topology = Topology(pairs=4, trunk=trunk, client_machines=3)
    (reason,) = shaping.refusals(topology, [f"node{number}" for number in range(1, nodes + 1)])
    assert says in reason


def test_guests_that_may_be_anywhere_are_put_on_one_node(server: StandIn) -> None:
    server.nodes = ["node1", "node2"]
    params = DRIVER.params(base=str(server.base), kernel="/opt/k")
    with open_head(str(server.base), None) as head, own_space(head, "twinbed") as own:
        guests = launch.wanted(params, Topology(pairs=2))
        launch.launch(own.socket, params, guests, None, 2)
        assert any(line.endswith("vm config colocate client1") for line in server.heard)
        assert not launch.on_one_node(machines(own.socket)).agrees, "the stand-in puts the first elsewhere: it is noticed"


def test_what_was_put_is_deleted_from_every_node(server: StandIn) -> None:
    """A node copies what is sent to its guests; one that has not refuses, which is no fault."""
    for nodes in (["node1"], ["node1", "node2"]):
        server.nodes, server.heard = nodes, []
        with open_head(str(server.base), None) as head, own_space(head, "twinbed") as own:
            own.put(own.probe, b"program")
        told = [line for line in server.heard if line.startswith("mesh send")]
        assert told == ([f"mesh send all file delete {own.probe}"] if len(nodes) > 1 else [])
        assert list(server.files.iterdir()) == []


def test_a_capture_on_another_node_is_refused(server: StandIn, tmp_path: Path) -> None:
    server.nodes = ["node1", "node2"]
    params = DRIVER.params(base=str(server.base), kernel="/opt/k", nodes=["node2"])
    with open_head(str(server.base), None) as head, own_space(head, "twinbed") as own:
        launch.launch(own.socket, params, launch.wanted(params, Topology()), None, 2)
        with (
            pytest.raises(HostError, match=r"head node \(node1\) only, not for .*server on node2"),
            captured(own, machines(own.socket), tmp_path),
        ):
            pass
