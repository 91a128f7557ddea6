"""Clients on several machines, servers on one: each client's packets take its own machine's trunk, all is as it was asked, and
what is put on machines is put on all of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from twinbed import design
from twinbed.backgrounds.stress import ARTIFACT
from twinbed.contracts.bed import Bed
from twinbed.contracts.place import MACHINE, MACHINE2
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.links import openvswitch, trunk
from twinbed.links.layout import layout
from twinbed.model.caution import Kind
from twinbed.model.run import Phase
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

NETDEV = "openvswitch-netdev"
CLIENT_MACHINES = (MACHINE, "machine3", "machine4")
MACHINES = {MACHINE, MACHINE2, "machine3", "machine4"}


@contextlib.contextmanager
def bed_of(site: Site, topology: Topology, driver: str = "container", **settings: object) -> Iterator[Bed]:
    plugin = PLUGINS.drivers[driver]
    with plugin.up(plugin.params(**settings), topology, site) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        yield bed


def carried(bed: Bed) -> dict[str, int]:
    """Bytes that came in by each trunk at the servers' machine."""
    said = json.loads(bed.hosts[MACHINE2].run(["ip", "-j", "-s", "link", "show"]).stdout)
    return {row["ifname"]: row["stats64"]["rx"]["bytes"] for row in said if row["ifname"].startswith("trunk")}


def sent(bed: Bed, client: str, server: str) -> int:
    """Bytes over TCP, as the receiver counts them: iperf3 does not wait for the last that it sent."""
    listener = bed.hosts[server].start(["iperf3", "-s", "-1", "-p", "5000"])
    bed.hosts[server].listening(5000, 30.0)
    argv = ["iperf3", "-c", bed.addresses[server], "-p", "5000", "-n", "1M", "-w", "128K", "-J"]
    said = bed.hosts[client].run(argv, limit_s=120.0)
    assert listener.wait(30.0).code == 0
    return int(json.loads(said.stdout)["end"]["sum_received"]["bytes"])


@pytest.mark.parametrize(
    ("switch", "kind", "vlan"),
    [
        ("bridge", "plain", None),
        ("bridge", "vxlan", None),
        (NETDEV, "vlan", None),
        (NETDEV, "gre", None),
        (NETDEV, "vxlan", 5),
    ],
)
def test_every_client_goes_by_its_own_machines_trunk(
    switch: str, kind: str, vlan: int | None, site: Callable[..., Site], leaves_nothing: None
) -> None:
    topology = Topology(pairs=4, switch=switch, trunk=kind, vlan=vlan, client_machines=3)
    with bed_of(site(), topology) as bed:
        assert set(bed.hosts) - {name for pair in topology.names() for name in pair} == MACHINES
        (caution,) = [each for each in bed.cautions if each.kind == Kind.STAND_IN]
        assert caution.detail == "machine, machine2, machine3 and machine4 are network namespaces of one machine"
        ports = {target.name: set(target.interfaces) for target in bed.targets if target.captures}
        assert ports == {
            MACHINE: {"p.client1", "p.client4"},
            MACHINE2: {f"p.server{number}" for number in range(1, 5)},
            "machine3": {"p.client2"},
            "machine4": {"p.client3"},
        }
        for number, (client, server) in enumerate(topology.names()):
            before = carried(bed)
            received = sent(bed, client, server)
            grown = {name: bytes_ - before[name] for name, bytes_ in carried(bed).items()}
            own = grown.pop(f"trunk{number % 3}")
            assert own > received > 20 * max(grown.values()), (client, own, grown)
        said = {(item.subject, item.setting): item.found for item in bed.applied}
    for number, machine in enumerate(CLIENT_MACHINES):
        for name in (machine, MACHINE2):
            subject = f"trunk{number}" if name == MACHINE else f"{name}.trunk{number}"
            assert said[subject, "mtu"] == 1500 + trunk.HEADERS.get(kind, 0)
            if (end := trunk.tunnel(topology, number, name)) is not None:
                tunnel = subject.replace("trunk", "tunnel")
                assert str(said[tunnel, "key"]) == str(79 + number)
                local, remote = ("local", "remote") if switch == "bridge" else ("local_ip", "remote_ip")
                assert (said[tunnel, local], said[tunnel, remote]) == (end.local, end.remote)


@pytest.mark.parametrize("kind", ["plain", "vxlan"])
def test_a_machine_for_every_client(kind: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    topology = Topology(pairs=8, trunk=kind, client_machines=8)
    with bed_of(site(), topology) as bed:
        assert len(layout(topology).machines) == len(set(bed.hosts)) - 16 == 9
        for client, server in topology.names():
            assert sent(bed, client, server) > 0


def test_guests_on_the_servers_machine_and_containers_on_the_others(site: Callable[..., Site], leaves_nothing: None) -> None:
    topology = Topology(pairs=2, trunk="vxlan", client_machines=2)
    kinds = {"client": {"driver": "container"}, "server": {"driver": "qemu", "nic": "virtio-net-pci"}}
    with bed_of(site(), topology, "mixed", **kinds) as bed:
        said = {(item.subject, item.setting): item.found for item in bed.applied}
        assert (said["p.client2", "kind"], said["p.server2", "kind"]) == ("veth", "tun")
        for number, (client, server) in enumerate(topology.names()):
            before = carried(bed)[f"trunk{number}"]
            received = sent(bed, client, server)
            assert carried(bed)[f"trunk{number}"] - before > received > 0


def one_run(
    switch: str, kind: str, more: str = "", workload: str = "kind: http, duration: 1s, max_requests: 50", queue: str = ""
) -> Run:
    text = f"""
study: spread
testbeds: {{bed: {{driver: container}}}}
workload: {{{workload}}}
topology: {{pairs: 3, switch: {switch}, trunk: {kind}, client_machines: 3, link: {{rate: 20mbit{queue}}}}}
replicates: 1
{more}
"""
    return design.runs(load(text, "spread.yaml", catalogue()))[0]


def test_what_is_put_on_machines_is_put_on_all(site: Callable[..., Site], leaves_nothing: None) -> None:
    """The load, the counters, a capture of every link; and every lost datagram is found, whatever machine dropped it."""
    workload = "kind: iperf3, protocol: udp, rate: 40mbit, payload: 1400B, duration: 1s"
    more = "background: {kind: stress, cpu: 1, where: machine}\ninstruments: [packets, counters]"
    # The default queue holds a second of what is too much, and a client on a busy machine sends less than asked.
    run, place, outcome = one_run("bridge", "plain", more, workload, ", queue: 20"), site(), Outcome()
    execute(run, PLUGINS, place, outcome, lambda _: None, None)
    assert outcome.applied and all(item.agrees for item in outcome.applied)
    assert set(outcome.passport) >= MACHINES
    assert {path.parent.name for path in place.artifacts.glob(f"*/{ARTIFACT}")} == MACHINES
    captures = {path.stem: path.parent.name for path in place.artifacts.glob("*/*.pcap")}
    assert captures == {f"server{number}": MACHINE2 for number in (1, 2, 3)} | {
        f"client{number}": machine for number, machine in enumerate(CLIENT_MACHINES, start=1)
    }
    losses = PLUGINS.instruments["counters"].extract(run.instruments["counters"].params, place.artifacts).tables["losses"]
    stages: dict[str, dict[str, float]] = {}
    for row in losses.to_pylist():
        if row["direction"] == "client_to_server":
            stages.setdefault(row["pair"], {})[row["stage"]] = row["packets"] or 0.0
    assert set(stages) == {"client1", "client2", "client3"}
    for pair in stages.values():
        assert pair["shaper"] > 0, "twice the rate is offered"
        assert abs(pair["unexplained"]) <= 0.01 * (pair["sent"] - pair["received"])


def altered(module: Any, function: str, old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    """In what is planned, ``old`` becomes ``new``."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = getattr(module, function)

        def other(*arguments: Any, **named: Any) -> Any:
            plan = original(*arguments, **named)
            return plan.replace(old, new) if isinstance(plan, str) else [word.replace(old, new) for word in plan]

        patch.setattr(module, function, other)

    return sabotage


SABOTAGED: Mapping[str, tuple[str, str, Callable[[pytest.MonkeyPatch], None], str]] = {
    "key": (
        "bridge",
        "vxlan",
        altered(trunk, "tunnel_device", "vxlan id 80", "vxlan id 90"),
        "machine3.tunnel1: key should be 80 ",
    ),
    "end": (
        "bridge",
        "vxlan",
        altered(trunk, "address", "10.79.2.1/30", "10.79.2.3/30"),
        "machine4.trunk2: address should be '10.79.2.1/30' ",
    ),
    "cable": (
        "bridge",
        "plain",
        altered(trunk, "cable", "trunk1 mtu 1500 type", "trunk1 mtu 1400 type"),
        "machine3.trunk1: mtu should be 1500 ",
    ),
    "tag": (
        NETDEV,
        "vlan",
        altered(openvswitch, "join", "trunks=77", "trunks=78"),
        "machine4.trunk2: tagged_vlan should be 77 ",
    ),
}


@pytest.mark.parametrize("name", SABOTAGED)
def test_a_trunk_that_is_not_as_asked_fails_the_run_and_is_named(
    name: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    switch, kind, sabotage, says = SABOTAGED[name]
    sabotage(monkeypatch)
    with pytest.raises(RunFailed) as failure:
        execute(one_run(switch, kind, "instruments: []"), PLUGINS, site(), Outcome(), lambda _: None)
    assert failure.value.phase == Phase.CONFIGURE
    assert says in failure.value.reason
