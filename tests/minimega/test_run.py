"""Whole testbeds and runs through the driver, against the stand-in with real guests: real programs, real packets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from minimega.standin import StandIn
from twinbed import design
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed
from twinbed.hosts.site import Site
from twinbed.lab.execution import Outcome, execute
from twinbed.model.plugin import MACHINE
from twinbed.model.study import load
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.testbeds.minimega import driver, launch
from twinbed.testbeds.minimega.control import Control, Guest
from twinbed.testbeds.minimega.head import open_head
from twinbed.testbeds.minimega.machine import machines
from twinbed.testbeds.minimega.space import own_space

DRIVER = PLUGINS.drivers["minimega"]


@pytest.mark.parametrize("control", ["virtio-serial", "cc"])
def test_a_bed_is_all_that_the_contract_says(real: StandIn, site: Callable[..., Site], control: str) -> None:
    """The contract of tests/contract, over both ways into a guest."""
    params = DRIVER.params(base=str(real.base), kernel="/opt/guest.kernel", initrd="/opt/guest.initrd", control=control)
    with DRIVER.up(params, Topology(link=Link(rate=10**8)), site()) as bed:
        client, server = bed.hosts["client"], bed.hosts["server"]
        assert client.run(["echo", "hello", "there"]).stdout == b"hello there\n"
        with pytest.raises(ProgramFailed, match="client: false: exit code 1"):
            client.run(["false"])
        with pytest.raises(HostError, match="no-such-program"):
            client.run(["no-such-program"])
        assert server.run(["cat"], stdin=b"x" * 300_000).stdout == b"x" * 300_000
        content = bytes(range(256)) * 1024
        server.write(f"{server.artifacts}/data", content)
        assert server.read(f"{server.artifacts}/data") == content
        server.collect(site().place("server"))
        assert (site().place("server") / "data").read_bytes() == content
        with pytest.raises(HostError, match="/nowhere/at/all"):
            server.read("/nowhere/at/all")
        sleeper = client.start(["sleep", "30"])
        sleeper.started()
        sleeper.signal(15)
        assert sleeper.wait(5.0).signal == 15
        with pytest.raises(LimitExceeded, match=r"client: sleep 30: not done after 0\.2 s"):
            client.run(["sleep", "30"], limit_s=0.2)
        assert [item for item in bed.applied if not item.agrees] == []
        assert set(bed.passport) == {MACHINE, "client", "server"}
        assert all(bed.passport.values())
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        assert found["client", "rate"] == 10**8
        assert found["client", "nic"] == "virtio-net-pci"
        assert bed.passport["client"]["control"] == control
    assert set(real.spaces) == {"minimega"}
    assert list(real.files.iterdir()) == []


@pytest.mark.parametrize("control", ["auto", "cc"])
def test_a_run_goes_from_end_to_end(real: StandIn, site: Callable[..., Site], control: str) -> None:
    text = f"""
study: cluster
testbeds:
  bed: {{driver: minimega, base: {real.base}, kernel: /opt/k, initrd: /opt/i, control: {control}, capture: on}}
workload: {{kind: http, duration: 1s, max_requests: 20}}
topology: {{link: {{rate: 1gbit}}}}
instruments: [packets, counters]
replicates: 1
"""
    run = design.runs(load(text, "cluster.yaml", catalogue()))[0]
    place: Path = site().artifacts
    outcome = Outcome()
    execute(run, PLUGINS, site(), outcome, lambda _: None)
    values = {value.metric: value.value for value in PLUGINS.workloads["http"].parse(run.workload.params, place).values}
    assert values["requests"] == 20
    assert values["failed_requests"] == 0
    packets = run.instruments["packets"]
    seen = {
        (value.host, value.metric): value.value
        for value in PLUGINS.instruments["packets"].extract(packets.params, place).values
    }
    assert seen
    assert (place / MACHINE / "client.pcap").stat().st_size > 20 * 1000
    assert set(real.spaces) == {"minimega"}


def test_virtual_machines_are_hosts_through_their_port(machines: StandIn, site: Callable[..., Site]) -> None:
    """QEMU, a guest kernel, its virtio-serial driver and its NICs: the two ends have different ones."""
    params = DRIVER.params(
        base=str(machines.base),
        kernel="/opt/guest.kernel",
        server_nic="e1000",
        offload="off",
        congestion_control="reno",
        control="virtio-serial",
    )
    with DRIVER.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        found = {(item.subject, item.setting): item.found for item in bed.applied}
        assert (found["client", "nic"], found["server", "nic"]) == ("virtio-net-pci", "e1000")
        assert found["server", "offload.tso"] == "off"
        assert (bed.passport["client"]["NIC driver"], bed.passport["server"]["NIC driver"]) == ("virtio_net", "e1000")
        listener = bed.hosts["server"].start(["iperf3", "-s", "-1", "-p", "5000"])
        bed.hosts["server"].listening(5000, 10.0)
        bed.hosts["client"].run(["iperf3", "-c", bed.addresses["server"], "-p", "5000", "-n", "1M"])
        assert listener.wait(10.0).code == 0
    assert set(machines.spaces) == {"minimega"}


def test_minimegas_own_containers(real: StandIn, site: Callable[..., Site]) -> None:
    params = DRIVER.params(base=str(real.base), type="container", filesystem="/opt/root")
    with DRIVER.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        assert bed.passport["client"]["control"].startswith("cc; no virtio-serial: client: it has no port")
        assert bed.hosts["client"].run(["hostname"]).text == "client\n"


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
            assert Control(own.socket).run(guest, "echo", name, limit_s=5.0) == {"stdout": f"echo {name}\n"}


def test_guests_that_may_be_anywhere_are_put_on_one_node(server: StandIn) -> None:
    server.nodes = ["node1", "node2"]
    params = DRIVER.params(base=str(server.base), kernel="/opt/k")
    with open_head(str(server.base), None) as head, own_space(head, "twinbed") as own:
        guests = launch.wanted(params, Topology(pairs=2))
        launch.launch(own.socket, params, guests, None, 2)
        assert any(line.endswith("vm config colocate client1") for line in server.heard)
        assert not launch.on_one_node(machines(own.socket)).agrees, "the stand-in puts the first elsewhere: it is noticed"
