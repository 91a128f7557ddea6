"""Plans of switches and trunks, and what is made of Open vSwitch's and iproute2's answers.

The answers were recorded from Open vSwitch 3.1.0 and iproute2 6.1.0, by the commands named beside them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from twinbed.contracts.check import Check
from twinbed.contracts.host import Exit
from twinbed.contracts.host_settings import HostSettings
from twinbed.contracts.place import MACHINE, MACHINE2
from twinbed.hosts.error import HostError
from twinbed.lab import preflight
from twinbed.links import abilities as able
from twinbed.links import bridge, openvswitch, trunk
from twinbed.links.abilities import Ability, abilities, every, needed
from twinbed.links.device import Device, Port
from twinbed.links.layout import layout
from twinbed.links.openvswitch import Carried, Listings, OpenVSwitch, Unfit
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS

# ovs-appctl dpif/show
SHOWN = """\
netdev@ovs-netdev: hit:290959 missed:20
  switch0:
    p.1 2/5: (system)
    switch0 65534/1: (tap)
    tunnel0 1/4: (gre: key=79, local_ip=10.79.0.1, remote_ip=10.79.0.2)
  underlay0:
    trunk0 1/3: (system)
    underlay0 65534/2: (tap)
"""
# ovs-vsctl --format=json --columns=name,type,ofport,error,options,mtu,status list interface
INTERFACES = (
    b'{"data":[["p.1","",2,["set",[]],["map",[]],1500,["map",[["driver_name","veth"],["driver_version","1.0"],'
    b'["firmware_version",""]]]],["tunnel0","gre",1,["set",[]],["map",[["key","79"],["local_ip","10.79.0.1"],'
    b'["remote_ip","10.79.0.2"]]],["set",[]],["map",[["tunnel_egress_iface","underlay0"],'
    b'["tunnel_egress_iface_carrier","up"]]]]],"headings":["name","type","ofport","error","options","mtu","status"]}'
)
# ovs-vsctl --format=json --columns=name,tag list port
PORTS = b'{"data":[["p.2",5],["switch0",["set",[]]],["p.1",5]],"headings":["name","tag"]}'
# ovs-appctl tnl/neigh/show
NEIGHBOURS = """\
IP                                            MAC                 Bridge
==========================================================================
10.79.0.2                                     02:00:0a:4f:00:02   underlay0
"""


# ---- plans


def test_a_switch_of_open_vswitch() -> None:
    assert " ".join(openvswitch.switch("switch0", "netdev")) == (
        "add-br switch0 -- set bridge switch0 datapath_type=netdev fail_mode=standalone"
        " stp_enable=false rstp_enable=false mcast_snooping_enable=false"
    )
    assert openvswitch.switch("u", "system", "02:00:0a:4f:00:01")[-1] == "other_config:hwaddr=02:00:0a:4f:00:01"


@pytest.mark.parametrize(
    ("port", "vsctl", "vlan"),
    [
        (Port("p.client", "switch0"), "add-port switch0 p.client", ""),
        (
            Port("p.client", "switch0", access=5),
            "add-port switch0 p.client tag=5",
            "vlan add dev p.client vid 5 pvid untagged\n",
        ),
        (Port("trunk0", "switch0", tagged=77), "add-port switch0 trunk0 trunks=77", "vlan add dev trunk0 vid 77\n"),
    ],
)
def test_a_port_and_its_vlan(port: Port, vsctl: str, vlan: str) -> None:
    assert openvswitch.join(port) == vsctl.split()
    assert bridge.vlan(port) == vlan


def test_a_bridge_with_vlans_has_none_by_default() -> None:
    assert bridge.switch("switch0", vlans=True) == (
        "link add switch0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0 vlan_filtering 1 vlan_default_pvid 0\n"
        "link set switch0 up\n"
    )


@pytest.mark.parametrize(
    ("how", "vlan", "mtu", "port"),
    [
        ({"trunk": "plain"}, None, 1500, Port("trunk0", "switch0")),
        ({"trunk": "plain", "vlan": 5}, 5, 1500, Port("trunk0", "switch0", access=5)),
        ({"trunk": "vlan"}, 77, 1500, Port("trunk0", "switch0", tagged=77)),
        ({"trunk": "vlan", "vlan": 5}, 5, 1500, Port("trunk0", "switch0", tagged=5)),
        ({"trunk": "gre"}, None, 1542, Port("tunnel0", "switch0")),
        ({"trunk": "vxlan", "vlan": 5}, 5, 1550, Port("tunnel0", "switch0", access=5)),
        ({"trunk": "vxlan", "link": {"mtu": 9000}}, None, 9050, Port("tunnel0", "switch0")),
    ],
)
def test_what_a_trunk_is(how: dict[str, Any], vlan: int | None, mtu: int, port: Port) -> None:
    """VXLAN over IPv4 adds 50 bytes to an IP packet of a host (RFC 7348, section 5); GRE with a key 42."""
    topology = Topology.model_validate(how)
    assert (trunk.vlan(topology), trunk.mtu(topology), trunk.port(topology, 0, MACHINE)) == (vlan, mtu, port)
    first, second = trunk.tunnel(topology, 0, MACHINE), trunk.tunnel(topology, 0, MACHINE2)
    assert (first is None) == (second is None) == (topology.trunk in ("plain", "vlan"))
    if first and second:
        assert (first.local, first.remote, first.local_mac) == (second.remote, second.local, second.remote_mac)


def test_the_cable_and_a_tunnel_of_the_kernel() -> None:
    assert trunk.cable(0, 1550, 4711) == (
        "link add trunk0 mtu 1550 type veth peer name trunk0 mtu 1550 netns 4711\nlink set trunk0 up\n"
    )
    end = trunk.Tunnel("vxlan", 2, 0)
    assert trunk.address("trunk0", end, 1550) == (
        "link set trunk0 mtu 1550\naddr add 10.79.0.2/30 dev trunk0\nlink set trunk0 up\n"
    )
    assert trunk.tunnel_device(end, 1500) == (
        "link add tunnel0 mtu 1500 type vxlan id 79 local 10.79.0.2 remote 10.79.0.1 dev trunk0 dstport 4789\n"
        "link set tunnel0 up\n"
    )
    assert trunk.tunnel_device(trunk.Tunnel("gre", 1, 0), 1500) == (
        "link add tunnel0 mtu 1500 type gretap local 10.79.0.1 remote 10.79.0.2 dev trunk0 key 79\nlink set tunnel0 up\n"
    )


@pytest.mark.parametrize("kind", ["gre", "vxlan"])
def test_trunks_are_told_apart_by_all_that_they_have(kind: str) -> None:
    """A kernel refuses a second VXLAN of one identifier and port ("A VXLAN device with the specified VNI already exists")."""
    plan = layout(Topology(pairs=80, trunk=kind, client_machines=80))
    ends = [
        end
        for number, machines in enumerate(plan.trunks)
        for machine in machines
        if (end := trunk.tunnel(Topology(trunk=kind), number, machine)) is not None
    ]
    assert len(ends) == 160
    assert len({end.local for end in ends}) == len({end.local_mac for end in ends}) == 160
    for what in ("key", "device", "cable"):
        assert len({getattr(end, what) for end in ends}) == 80, what
    assert all(len(name) < 16 for end in ends for name in (end.device, end.cable)), "IFNAMSIZ of linux/if.h"
    assert all(first.remote == second.local for first, second in zip(ends[::2], ends[1::2], strict=True))
    last = ends[-1]
    assert (last.local, last.local_mac, last.key) == ("10.79.79.2", "02:00:0a:4f:4f:02", 158)


# ---- answers


def test_rows_of_a_table() -> None:
    first, second = openvswitch.rows(INTERFACES)
    assert (first["name"], first["type"], first["ofport"], first["error"], first["options"]) == ("p.1", "", 2, None, {})
    assert second["options"] == {"key": "79", "local_ip": "10.79.0.1", "remote_ip": "10.79.0.2"}
    assert {row["name"]: row["tag"] for row in openvswitch.rows(PORTS)} == {"p.1": 5, "p.2": 5, "switch0": None}
    several = b'{"data":[[["set",[1,2]],["uuid","258f0b48"]]],"headings":["trunks","_uuid"]}'
    assert openvswitch.rows(several) == [{"trunks": (1, 2), "_uuid": "258f0b48"}]


@pytest.mark.parametrize("said", [b"", b"ovs-vsctl: no", b"[]", b'{"data":[[1,2]],"headings":["a"]}', b'{"headings":[]}'])
def test_what_is_no_table_is_an_error_with_its_text(said: bytes) -> None:
    with pytest.raises(ValueError, match="did not print a table"):
        openvswitch.rows(said)


def test_what_datapaths_carry() -> None:
    found = openvswitch.carried(SHOWN)
    assert found["p.1"] == Carried("netdev", "switch0", "system", {})
    assert found["switch0"] == Carried("netdev", "switch0", "tap", {})
    assert found["trunk0"].switch == "underlay0"
    assert found["tunnel0"].kind == "gre"
    assert found["tunnel0"].options == {"key": "79", "local_ip": "10.79.0.1", "remote_ip": "10.79.0.2"}
    assert openvswitch.carried("") == {}
    with pytest.raises(ValueError, match="did not print ports: 'no such command'"):
        openvswitch.carried(SHOWN + "no such command")


def test_ways_and_neighbours() -> None:
    assert openvswitch.way_out("src 10.79.0.1\ngateway ::\ndev underlay0\n") == "underlay0"
    assert openvswitch.way_out("Not found\n") is None
    assert openvswitch.neighbours(NEIGHBOURS) == {"10.79.0.2": "02:00:0a:4f:00:02"}


def found_with(**changes: Any) -> Listings:
    facts: dict[str, Any] = {
        "bridges": {
            "switch0": {
                "fail_mode": "standalone",
                "stp_enable": False,
                "rstp_enable": False,
                "mcast_snooping_enable": False,
            }
        },
        "ports": {"p.1": {"tag": 5, "trunks": None}},
        "interfaces": {"p.1": {"ofport": 2, "error": None}},
        "carried": openvswitch.carried(SHOWN),
    }
    return Listings(**{**facts, **changes})


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (found_with(), set()),
        (found_with(ports={"p.1": {"tag": 6, "trunks": None}}), {"vlan"}),
        (found_with(ports={"p.1": {"tag": None, "trunks": None}}), {"vlan"}),
        (found_with(ports={"p.1": {"tag": 5, "trunks": (1, 2)}}), {"tagged_vlan"}),
        (found_with(ports={}), {"vlan", "tagged_vlan"}),
        (found_with(interfaces={"p.1": {"ofport": -1, "error": "could not open network device p.1"}}), {"in_use", "error"}),
        (found_with(interfaces={"p.1": {"ofport": None, "error": None}}), {"in_use"}),
        (found_with(interfaces={}), {"in_use", "error"}),
        (found_with(carried={"p.1": Carried("system", "switch0", "system", {})}), {"datapath"}),
        (found_with(carried={"p.1": Carried("netdev", "switch1", "tap", {})}), {"master", "type"}),
        (found_with(carried={}), {"master", "datapath", "type"}),
    ],
)
def test_a_port_that_is_not_as_asked_disagrees(found: Listings, wrong: set[str]) -> None:
    applied = openvswitch.applied_joined(Port("p.1", "switch0", access=5), "netdev", found)
    assert {item.setting for item in applied if not item.agrees} == wrong


def test_a_switch_that_is_not_as_asked_disagrees() -> None:
    assert all(item.agrees for item in openvswitch.applied_switch("switch0", "netdev", found_with()))
    settings = {item.setting for item in openvswitch.applied_switch("switch0", "netdev", found_with())}
    missing = openvswitch.applied_switch("switch0", "netdev", found_with(bridges={}, carried={}))
    assert {item.setting for item in missing if not item.agrees} == settings
    (datapath,) = [item.setting for item in openvswitch.applied_switch("switch0", "system", found_with()) if not item.agrees]
    assert datapath == "datapath"


def test_options_of_a_tunnel_that_are_not_as_asked_disagree() -> None:
    port, asked = Port("tunnel0", "switch0"), trunk.options(trunk.Tunnel("gre", 1, 0))
    assert all(item.agrees for item in openvswitch.applied_options(port, asked, found_with()))
    other = trunk.options(trunk.Tunnel("gre", 2, 0))
    wrong = openvswitch.applied_options(port, other, found_with())
    assert {item.setting for item in wrong if not item.agrees} == {"local_ip", "remote_ip"}


# bridge -j vlan show, in the form of bridge(8), iproute2 6.1
VLANS: list[dict[str, Any]] = [
    {"ifname": "p.client", "vlans": [{"vlan": 5, "flags": ["PVID", "Egress Untagged"]}]},
    {"ifname": "trunk0", "vlans": [{"vlan": 5}]},
]


def test_vlans_of_a_bridge() -> None:
    access, tagged = Port("p.client", "switch0", access=5), Port("trunk0", "switch0", tagged=5)
    assert all(item.agrees for port in (access, tagged) for item in bridge.applied_vlan(port, VLANS))
    assert not all(item.agrees for item in bridge.applied_vlan(Port("p.client", "switch0", access=6), VLANS))
    assert not all(item.agrees for item in bridge.applied_vlan(Port("p.client", "switch0", tagged=5), VLANS))
    assert not all(item.agrees for item in bridge.applied_vlan(Port("trunk0", "switch0", access=5), VLANS))
    assert not all(item.agrees for item in bridge.applied_vlan(access, []))


def test_a_gre_device_of_the_kernel() -> None:
    details = {"remote": "10.79.0.2", "local": "10.79.0.1", "ikey": "0.0.0.79", "okey": "0.0.0.79"}
    device = Device("tunnel0", "gretap", "switch0", 1500, True, True, "", (), details)
    end = trunk.Tunnel("gre", 1, 0)
    assert all(item.agrees for item in trunk.applied_tunnel_device(end, 1500, [device]))
    assert not any(item.agrees for item in trunk.applied_tunnel_device(end, 1500, []))


# ---- Open vSwitch's servers


class Machine:
    """Says what it is told to; remembers what it was asked."""

    name, artifacts = "machine", "/artifacts"

    def __init__(self, **answers: Exit) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []

    def run(self, argv: list[str], **_: object) -> Exit:
        self.asked.append(argv)
        return self.answers.get(argv[0].replace("-", "_"), said())

    def start(self, argv: list[str], **_: object) -> Any:
        self.asked.append(argv)
        log = b"2026-11-21T19:56:03Z|00006|bridge|INFO|ovs-vswitchd (Open vSwitch) 3.1.0\n"
        log += b"2026-11-21T19:56:05Z|00007|bridge|WARN|could not open network device p.x (No such device)\n"
        return SimpleNamespace(says=lambda *_: None, stderr=log)


def said(stdout: bytes = b"", stderr: bytes = b"") -> Exit:
    return Exit(0, None, stdout, stderr, None, 0, 0.0, 0.0)


def test_what_open_vswitch_could_not_do_is_an_error_with_its_reason(tmp_path: Any) -> None:
    machine = Machine()
    servers = OpenVSwitch(machine, tmp_path / "ovs", "netdev")  # type: ignore[arg-type]
    assert [argv[0] for argv in machine.asked] == ["ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-vswitchd"]
    assert servers.version == "3.1.0"
    assert all("--detach" not in argv for argv in machine.asked), "they die with the lab"
    machine.answers["ovs_vsctl"] = said(stderr=b"ovs-vsctl: Error detected while setting up 'p.x'.  See ovs-vswitchd log")
    with pytest.raises(HostError, match=r"add-port switch0 p\.x: could not open network device p\.x \(No such device\)"):
        servers.vsctl(["add-port", "switch0", "p.x"])


def test_what_open_vswitch_says_that_cannot_be_understood_fails_the_run(tmp_path: Any) -> None:
    machine = Machine(ovs_vsctl=said(b"something"))
    servers = OpenVSwitch(machine, tmp_path / "ovs", "netdev")  # type: ignore[arg-type]
    with pytest.raises(HostError, match="machine: ovs-vsctl did not print a table"):
        servers.listings()


# ---- what is needed, and what contradicts


@pytest.mark.parametrize(
    ("how", "own_kernels", "what"),
    [
        ({}, False, ["switch: bridge"]),
        ({"vlan": 3}, False, ["switch: bridge", "switch: bridge, vlan"]),
        ({"switch": "openvswitch", "trunk": "gre"}, False, ["switch: openvswitch", "switch: openvswitch, trunk: gre"]),
        ({"link": {"rate": "1gbit"}}, True, ["switch: bridge", "HTB"]),
        ({"link": {"rate": "1gbit", "shaper": "tbf", "queue": 9}}, True, ["switch: bridge", "TBF", "pfifo"]),
        ({"link": {"delay": "1ms"}}, True, ["switch: bridge", "netem or delay line"]),
        ({"link": {"delay": "1ms", "emulator": "netem"}}, True, ["switch: bridge", "netem"]),
        ({"link": {"delay": "1ms", "emulator": "delay-line"}}, True, ["switch: bridge", "delay line"]),
        ({"link": {"delay": "1ms", "emulated_at": "hosts"}}, True, ["switch: bridge"]),
        ({"link": {"delay": "1ms", "emulated_at": "hosts"}}, False, ["switch: bridge", "netem"]),
    ],
)
def test_what_a_topology_needs(how: dict[str, Any], own_kernels: bool, what: list[str]) -> None:
    assert [ability.what for ability in needed(Topology.model_validate(how), own_kernels=own_kernels)] == what


def test_every_need_can_be_tried() -> None:
    names = [ability.what for ability in every()]
    assert len(names) == len(set(names)) == 3 * 6 + 6
    for ability in every():
        assert set(needed(ability.topology)) <= set(every())
        assert ability.mend


def test_more_on_a_switch_that_does_not_work_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def refuse(_: object, ability: Ability, required: bool) -> Check:
        tried.append(ability.what)
        return Check(ability.what, False, "no such module", ability.mend, required)

    monkeypatch.setattr(able, "_try", refuse)
    wanted = [ability for ability in every() if ability.what.startswith("switch: openvswitch,")]
    checks = abilities(None, [*needed(Topology(switch="openvswitch")), *wanted], required=True)  # type: ignore[arg-type]
    assert tried == ["switch: openvswitch"]
    assert len(checks) == 6
    assert all((check.works, check.found, check.required) == (False, "no such module", True) for check in checks)


@pytest.mark.parametrize(("installed", "says"), [(True, "modprobe openvswitch"), (False, "apt-get install openvswitch-switch")])
def test_the_mend_of_open_vswitch(installed: bool, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(able.shutil, "which", lambda *_, **__: "/x" if installed else None)
    assert says in Ability("switch: openvswitch", Topology(switch="openvswitch")).mend


def test_the_userspace_datapath_needs_finished_packets() -> None:
    netdev = Topology(switch="openvswitch-netdev")
    assert openvswitch.host_settings(netdev, HostSettings()).tx == "off"
    assert openvswitch.host_settings(netdev, HostSettings(offload="off")).tx == "off"
    for topology in (Topology(), Topology(switch="openvswitch")):
        assert openvswitch.host_settings(topology, HostSettings(tx="on")).tx == "on"
    for settings in (HostSettings(tx="on"), HostSettings(offload="on"), HostSettings(tso="on")):
        with pytest.raises(Unfit, match="on: the userspace datapath of Open vSwitch drops packets") as error:
            openvswitch.host_settings(netdev, settings)
        assert "switch: bridge" in error.value.advice


@pytest.mark.parametrize(
    ("link", "fits"),
    [
        (Link(), True),
        (Link(queue=10), False),
        (Link(loss=0.1), True),
        (Link(loss=0.1, emulated_at="hosts"), True),
        (Link(delay=0.1, queue=10), True),
    ],
)
def test_the_userspace_datapath_has_no_queue_of_a_given_length(link: Link, fits: bool) -> None:
    topology = Topology(switch="openvswitch-netdev", link=link)
    if fits:
        openvswitch.host_settings(topology, HostSettings())
    else:
        with pytest.raises(Unfit, match="send buffer"):
            openvswitch.host_settings(topology, HostSettings())


def test_preflight_tries_what_the_beds_of_a_study_need(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(preflight, "abilities", lambda _, wanted, required: asked.extend(each.what for each in wanted) or [])
    drivers = PLUGINS.drivers
    container, qemu, mixed, fake = (drivers[name] for name in ("container", "qemu", "mixed", "fake"))
    emulated = Topology(link=Link(delay=0.01, emulated_at="hosts"))
    assert preflight.network([(emulated, fake, fake.params())]) == [] and asked == []
    assert preflight.network([(emulated, qemu, qemu.params()), (Topology(), qemu, qemu.params())]) == []
    assert asked == ["switch: bridge"]
    asked.clear()
    both = mixed.params.model_validate({"client": {"driver": "container", "tx": "on"}, "server": {"driver": "qemu"}})
    assert preflight.network([(emulated, mixed, both), (emulated, container, container.params())]) == []
    assert asked == ["switch: bridge", "netem"]
    (check,) = preflight.network([(Topology(switch="openvswitch-netdev"), mixed, both)])
    assert (check.works, check.required) == (False, True)
    assert "tx on" in check.found and "switch: bridge" in check.mend
