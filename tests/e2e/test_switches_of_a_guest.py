"""What the Linux bridge does where the kernel can filter VLANs and has GRE: in a guest, whose kernel can,
whatever this machine's does.  The guest stands for the machine, namespaces of it for the other machines and for the hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost, Running
from twinbed.links import bridge, switches, trunk
from twinbed.links.fabric import Fabric
from twinbed.links.layout import SWITCH, layout
from twinbed.model.topology import Topology
from twinbed.registry import PLUGINS


@dataclass(frozen=True)
class Namespace(AgentHost):
    """A network namespace of a host, as a host."""

    holder: int = 0
    """A process in it."""

    def start(self, argv: Sequence[str], **rest: Any) -> Running:
        return super().start(["nsenter", "--target", str(self.holder), "--net", *argv], **rest)

    def read(self, path: str, **rest: Any) -> bytes:
        return super().read(path.replace("/self/", f"/{self.holder}/"), **rest)


HOLDS = """
for each in all default; do echo 1 > /proc/sys/net/ipv6/conf/$each/disable_ipv6; done
ip link set lo up
echo there
exec sleep 300
"""


def namespace(host: AgentHost, name: str) -> Namespace:
    """Make one without IPv6, whose neighbour discovery would be on the wire."""
    program = host.start(["unshare", "--net", "sh", "-ec", HOLDS])
    program.says(b"there", 30.0)
    fields = {field: getattr(host, field) for field in ("connection", "artifacts", "shared", "bin")}
    return Namespace(name, **fields, holder=program.started())


@pytest.fixture
def guest(site: Callable[..., Site], leaves_nothing: None) -> Iterator[AgentHost]:
    driver = PLUGINS.drivers["mixed"]
    one = driver.params.model_validate({"client": {"driver": "qemu"}, "server": {"driver": "container"}})
    with driver.up(one, Topology(), site()) as bed:
        yield bed.hosts["client"]


def shows(wire: str, said: bytes) -> bool:
    return len(re.findall(wire, said.decode())) > 10


CASES = {
    "access": ({"vlan": 5, "trunk": "plain"}, [r"> \S+, ethertype IPv4 \(0x0800\), length \d+: 10\.77\."]),
    "tagged": ({"trunk": "vlan"}, [r"ethertype 802\.1Q \(0x8100\), length \d+: vlan 77, p 0, ethertype IPv4"]),
    "gre": ({"vlan": 6, "trunk": "gre"}, [r"10\.79\.0\.\d > 10\.79\.0\.\d: GREv0, key=0x4f, proto TEB"]),
}
"""And what is on the wire of each trunk."""


def test_a_bridge_does_all_that_the_kernel_can(guest: AgentHost) -> None:
    """One test, as a guest takes seconds to boot. Each program that is started in it takes a tenth of a second."""
    for how, wires in CASES.values():
        topology = Topology.model_validate(how)
        plan = layout(topology)
        machines = {name: namespace(guest, name) for name in plan.machines}
        made = {name: switches.Bridges(machine, trunk.vlan(topology) is not None) for name, machine in machines.items()}
        fabric = Fabric(topology, plan, machines, made)
        for own in made.values():
            own.add(SWITCH)
        fabric.join_machines()
        hosts = {name: namespace(guest, name) for name in plan.addresses}
        for name, (nic,) in plan.nics.items():
            fabric.attach_container(nic, hosts[name].holder)
            hosts[name].run(["ip", "-batch", "-"], stdin=bridge.address(nic, topology.link.mtu, up=False).encode())
        applied = fabric.applied()
        assert [item for item in applied if not item.agrees] == []
        found = {(item.subject, item.setting): item.found for item in applied}
        assert len(plan.trunks) == len(topology.names()) == len(wires)
        for at, ((client, server), wire) in enumerate(zip(topology.names(), wires, strict=True)):
            assert found[f"p.{server}", "vlan"] == [trunk.vlan(topology)]
            capture = machines[plan.trunks[at][0]].start(["tcpdump", "-i", trunk.cable_of(at), "-n", "-e", "-l", "-Z", "root"])
            capture.says(b"listening on", 30.0)
            listener = hosts[server].start(["iperf3", "-s", "-1", "-p", "5000", "--forceflush"])
            listener.says(b"listening", 30.0)
            hosts[client].run(["iperf3", "-c", plan.addresses[server], "-p", "5000", "-n", "64K"], limit_s=120.0)
            capture.says(partial(shows, wire), 30.0)
            capture.signal(2)
            lines = [line for line in capture.wait(30.0).text.splitlines() if re.match(r"\d\d:\d\d:\d\d\.", line)]
            assert [line for line in lines if "ARP" not in line and not re.search(wire, line)] == []

        if how is not CASES["access"][0]:
            continue
        elsewhere = Fabric(Topology.model_validate({**how, "vlan": 9}), plan, machines, made, fabric.kinds)
        wrong = {item.setting for item in elsewhere.applied() if not item.agrees}
        assert wrong >= {"vlan", "pvid"}, "another VLAN than asked is seen"
