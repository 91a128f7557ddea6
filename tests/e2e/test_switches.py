"""Every switch and trunk that works here carries real packets between hosts, at the rate asked, with what was asked for on the
wire; what does not work here is refused before anything runs."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from twinbed import design
from twinbed.cli.run import command
from twinbed.contracts.bed import Bed
from twinbed.contracts.place import MACHINE, MACHINE2
from twinbed.contracts.site import Site
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.lab.needs import PreflightFailed
from twinbed.links import bridge, checksums, network, openvswitch, trunk
from twinbed.links.abilities import abilities, every
from twinbed.model.caution import Kind
from twinbed.model.run import Phase
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

RATE = 20_000_000
GOODPUT = RATE * 1448 / 1514
"""TCP with timestamps in frames of 1,514 bytes, as tc counts them."""
NETDEV = "openvswitch-netdev"
CABLE = "trunk0"
TCP = r"10\.77\.\d+\.\d+\.\d+ > 10\.77\.\d+\.\d+\.\d+: Flags"

# What tcpdump must say of the frames of a TCP connection on the trunk.
WIRE = {
    "plain": rf"> \S+, ethertype IPv4 \(0x0800\), length \d+: {TCP}",
    "vlan": rf"ethertype 802\.1Q \(0x8100\), length \d+: vlan (\d+), p 0, ethertype IPv4 \(0x0800\), {TCP}",
    "gre": r"IPv4 \(0x0800\), length \d+: 10\.79\.0\.\d > 10\.79\.0\.\d: GREv0, key=0x4f, proto TEB",
    "vxlan": r"IPv4 \(0x0800\), length \d+: 10\.79\.0\.\d\.\d+ > 10\.79\.0\.\d\.4789: VXLAN, flags \[I\] \(0x08\), vni 79",
}


@contextlib.contextmanager
def bed_of(site: Site, topology: Topology, driver: str = "container", **settings: object) -> Iterator[Bed]:
    plugin = PLUGINS.drivers[driver]
    with plugin.up(plugin.params(**settings), topology, site) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        yield bed


def found(bed: Bed) -> dict[tuple[str, str], Any]:
    return {(item.subject, item.setting): item.found for item in bed.applied}


def goodput(bed: Bed, client: str, server: str, *how: str) -> float:
    """Bits per second at the receiver, of what takes more than one at the rate: however long a busy machine halts it, all is
    sent, where a second of time might be over with nothing."""
    listener = bed.hosts[server].start(["iperf3", "-s", "-1", "-p", "5000"])
    bed.hosts[server].listening(5000, 30.0)
    argv = ["iperf3", "-c", bed.addresses[server], "-p", "5000", "-n", "2M", "-J", *how]
    said = json.loads(bed.hosts[client].run(argv, limit_s=60.0).stdout)
    assert listener.wait(30.0).code == 0
    return float(said["end"]["sum_received"]["bits_per_second"])


def holds(bed: Bed, client: str = "client", server: str = "server") -> None:
    """Both ways about the rate, and not for want of a way through: without a shaper there is ten times as much and more.

    A guest on an emulated CPU measures a second less exactly than a container."""
    for how in ((), ("-R",)):
        assert 0.2 * GOODPUT < goodput(bed, client, server, *how) < 1.25 * GOODPUT


@pytest.mark.parametrize("vlan", [None, 5])
def test_open_vswitch_joins_containers_at_the_rate(vlan: int | None, site: Callable[..., Site], leaves_nothing: None) -> None:
    with bed_of(site(), Topology(switch=NETDEV, vlan=vlan, link=Link(rate=RATE))) as bed:
        said = found(bed)
        assert said["switch0", "datapath"] == said["p.client", "datapath"] == "netdev"
        assert said["p.client", "vlan"] == (vlan or "none")
        assert said["client", "offload.tx"] == said["server", "offload.tx"] == "off"
        assert said["switch0", "send_buffer"] > 0
        assert re.fullmatch(r"\d+\.\d+\.\d+", bed.passport[MACHINE]["Open vSwitch"])
        holds(bed)
    assert "Open vSwitch" in (site().place(MACHINE) / "ovs-vswitchd.log").read_text()


TRUNKS = [
    ("bridge", "plain", None),
    ("bridge", "vxlan", None),
    (NETDEV, "plain", 8),
    (NETDEV, "vlan", None),
    (NETDEV, "vlan", 9),
    (NETDEV, "gre", None),
    (NETDEV, "vxlan", 10),
]


@pytest.mark.parametrize(("switch", "kind", "vlan"), TRUNKS)
def test_a_trunk_carries_what_it_says(
    switch: str, kind: str, vlan: int | None, site: Callable[..., Site], leaves_nothing: None
) -> None:
    topology = Topology(switch=switch, trunk=kind, vlan=vlan, link=Link(rate=RATE))
    with bed_of(site(), topology) as bed:
        assert set(bed.hosts) == {MACHINE, MACHINE2, "client", "server"}
        assert Kind.STAND_IN in [caution.kind for caution in bed.cautions]
        capture = bed.hosts[MACHINE].start(["tcpdump", "-i", CABLE, "-n", "-e", "-l", "-c", "2000", "tcp", "or", "vlan"])
        tunnelled = ["tcpdump", "-i", CABLE, "-n", "-e", "-l", "-c", "2000", "ip", "net", "10.79.0.0/30"]
        outer = bed.hosts[MACHINE].start(tunnelled)
        for each in (capture, outer):
            each.says(b"listening on", 30.0)
        holds(bed)
        for each in (capture, outer):
            each.signal(2)
        inside, outside = ([line for line in each.wait(30.0).text.splitlines() if line] for each in (capture, outer))
    if kind in trunk.HEADERS:
        assert inside == [], "nothing but the tunnel's packets on the cable"
        packets = [line for line in outside if "10.79" in line]
        assert len(packets) > 50
        assert all(re.search(WIRE[kind], line) for line in packets)
        said = {(item.subject, item.setting): item.found for item in bed.applied}
        assert said["trunk0", "mtu"] == said["machine2.trunk0", "mtu"] == 1500 + trunk.HEADERS[kind]
        if switch == NETDEV:
            longest = max(int(length) for line in packets for length in re.findall(r"IPv4 \(0x0800\), length (\d+):", line))
            assert longest == 1514 + trunk.HEADERS[kind], "hosts send packets as long as without a tunnel"
    else:
        assert outside == []
        frames = [re.search(WIRE[kind], line) for line in inside if re.search(TCP, line)]
        assert len(frames) > 50
        assert all(frames)
        if kind == "vlan":
            assert {frame[1] for frame in frames if frame} == {str(vlan or trunk.DEFAULT_VLAN)}


def test_two_pairs_over_a_tunnel(site: Callable[..., Site], leaves_nothing: None) -> None:
    with bed_of(site(), Topology(pairs=2, switch=NETDEV, trunk="gre", vlan=3, link=Link(rate=RATE))) as bed:
        for client, server in (("client1", "server1"), ("client2", "server2")):
            holds(bed, client, server)


def test_guests_on_open_vswitch_over_a_tunnel(site: Callable[..., Site], leaves_nothing: None) -> None:
    """Taps are ports of the userspace datapath as veth pairs are."""
    topology = Topology(switch=NETDEV, trunk="vxlan", vlan=4, link=Link(rate=RATE))
    with bed_of(site(), topology, "qemu", nic="virtio-net-pci") as bed:
        said = found(bed)
        assert said["p.client", "kind"] == "tun"
        assert said["p.server", "datapath"] == "netdev"
        assert said["client", "offload.tx"] == "off"
        holds(bed)


def one_run(switch: str, more: str = "", driver: str = "{driver: container}") -> Run:
    text = f"""
study: switches
testbeds:
  bed: {driver}
workload: {{kind: http, duration: 1s, max_requests: 20}}
topology: {{switch: {switch}{more}, link: {{rate: 100mbit}}}}
instruments: []
replicates: 1
"""
    return design.runs(load(text, "switches.yaml", catalogue()))[0]


@pytest.mark.parametrize(("switch", "more"), [(NETDEV, ", vlan: 12"), (NETDEV, ", trunk: gre"), ("bridge", ", trunk: vxlan")])
def test_a_run_is_complete(switch: str, more: str, site: Callable[..., Site], leaves_nothing: None) -> None:
    outcome = Outcome()
    execute(one_run(switch, more), PLUGINS, site(), outcome, lambda _: None)
    assert outcome.applied and all(item.agrees for item in outcome.applied)


# ---- each setting made to differ once


def altered(module: Any, function: str, old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    """In what is planned, ``old`` becomes ``new``."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = getattr(module, function)

        def other(*arguments: Any, **named: Any) -> Any:
            plan = original(*arguments, **named)
            return plan.replace(old, new) if isinstance(plan, str) else [word.replace(old, new) for word in plan]

        patch.setattr(module, function, other)

    return sabotage


def left_out(device: str) -> Callable[[pytest.MonkeyPatch], None]:
    """One device never becomes a port."""

    def sabotage(patch: pytest.MonkeyPatch) -> None:
        original = openvswitch.join
        patch.setattr(openvswitch, "join", lambda port: ["list-br"] if port.device == device else original(port))

    return sabotage


def offloads_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(network, "set_offloads", lambda *_: None)


SABOTAGED = {
    "tag": (", vlan: 5", altered(openvswitch, "join", "tag=5", "tag=6"), "p.client: vlan should be 5 "),
    "trunk-tag": (", trunk: vlan", altered(openvswitch, "join", "trunks=77", "trunks=78"), "trunk0: tagged_vlan should be 77 "),
    "trunk-untagged": (", trunk: vlan", altered(openvswitch, "join", "trunks=77", "tag=77"), "trunk0: tagged_vlan should be "),
    "missing-port": ("", left_out("p.server"), "p.server: master should be 'switch0' "),
    "missing-trunk": (", trunk: plain", left_out("trunk0"), "machine2.trunk0: master should be 'switch0' "),
    "fail-mode": ("", altered(openvswitch, "switch", "standalone", "secure"), "switch0: fail_mode should be "),
    "spanning-tree": (
        "",
        altered(openvswitch, "switch", "rstp_enable=false", "rstp_enable=true"),
        "rapid_spanning_tree should",
    ),
    "snooping": (
        "",
        altered(openvswitch, "switch", "snooping_enable=false", "snooping_enable=true"),
        "multicast_snooping should",
    ),
    "offload": ("", offloads_left, "client: offload.tx should be 'off' "),
    "key": (", trunk: gre", altered(openvswitch, "tunnel", "key=79", "key=80"), "tunnel0: key should be '79' "),
    "type": (", trunk: gre", altered(openvswitch, "tunnel", "type=gre", "type=vxlan"), "tunnel0: type should be 'gre' "),
    "remote": (
        ", trunk: vxlan",
        altered(openvswitch, "tunnel", "remote_ip=10.79.0.2", "remote_ip=10.79.0.3"),
        "remote_ip should",
    ),
    "cable-mtu": (", trunk: gre", altered(trunk, "cable", "mtu 1542", "mtu 1600"), "trunk0: mtu should be 1542 "),
    "way-out": (", trunk: gre", altered(trunk, "address", "10.79.0.1/30", "10.80.0.1/30"), "underlay0: address should be "),
}


def reason(run: Run, site: Site) -> RunFailed:
    with pytest.raises(RunFailed) as failure:
        execute(run, PLUGINS, site, Outcome(), lambda _: None)
    return failure.value


@pytest.mark.parametrize("name", SABOTAGED)
def test_open_vswitch_that_is_not_as_asked_fails_the_run(
    name: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    more, sabotage, says = SABOTAGED[name]
    monkeypatch.setattr("twinbed.links.switches._ROUTE_LIMIT_S", 0.1)
    sabotage(monkeypatch)
    failure = reason(one_run(NETDEV, more), site())
    assert failure.phase == Phase.CONFIGURE
    assert says in failure.reason


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("vxlan id 79", "vxlan id 80", "tunnel0: key should be 79 "),
        ("dstport 4789", "dstport 4790", "tunnel0: udp_port should be 4789 "),
        ("remote 10.79.0.2", "remote 10.79.0.3", "tunnel0: remote should be '10.79.0.2' "),
        ("tunnel0 mtu 1500", "tunnel0 mtu 1400", "tunnel0: mtu should be 1500 "),
        ("link set tunnel0 up\n", "", "tunnel0: up should be True "),
    ],
)
def test_a_tunnel_of_the_kernel_that_is_not_as_asked_fails_the_run(
    old: str, new: str, says: str, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    altered(trunk, "tunnel_device", old, new)(monkeypatch)
    failure = reason(one_run("bridge", ", trunk: vxlan"), site())
    assert failure.phase == Phase.CONFIGURE
    assert says in failure.reason


def test_a_tunnel_of_the_kernel_that_is_on_no_switch_fails_the_run(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    original = bridge.join
    monkeypatch.setattr(bridge, "join", lambda port, switch: "" if port == "tunnel0" else original(port, switch))
    assert "tunnel0: master should be 'switch0' " in reason(one_run("bridge", ", trunk: vxlan"), site()).reason


def test_another_datapath_fails_the_run(
    site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, leaves_nothing: None
) -> None:
    """Where the kernel has the other one, by what is read back; else Open vSwitch itself says that it has not."""
    altered(openvswitch, "switch", "datapath_type=netdev", "datapath_type=system")(monkeypatch)
    assert "datapath" in reason(one_run(NETDEV), site()).reason


# ---- what this machine cannot do


def refused_or_done(text: str, folder: Path) -> tuple[int, str]:
    study = folder / "study.yaml"
    study.write_text(text)
    arguments = [str(study), "--output", str(folder / "results"), "--no-report"]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if isinstance(done.exception, PreflightFailed):
        return done.exception.exit_code, str(done.exception)
    assert done.exception is None, done.exception
    return done.return_value, done.output


def test_everything_is_tried_and_says_how_to_mend_it(probe: Path, leaves_nothing: None) -> None:
    checks = abilities(probe)
    assert [check.what for check in checks] == [ability.what for ability in every()]
    for check in checks:
        assert check.works or (check.found and check.mend), check
    working = {check.what for check in checks if check.works}
    assert {"switch: bridge", "HTB", "TBF", "pfifo", f"switch: {NETDEV}", f"switch: {NETDEV}, vlan"} <= working
    assert {f"switch: {NETDEV}, trunk: {kind}" for kind in WIRE} <= working


STUDY = """
study: refusal
testbeds: {{bed: {{driver: container{settings}}}}}
workload: {{kind: http, duration: 1s, max_requests: 5}}
topology: {{switch: {switch}{more}}}
instruments: []
replicates: 1
"""


@pytest.mark.parametrize(
    ("switch", "more", "what"),
    [
        ("bridge", ", vlan: 5", "switch: bridge, vlan"),
        ("bridge", ", trunk: vlan", "switch: bridge, trunk: vlan"),
        ("bridge", ", trunk: gre", "switch: bridge, trunk: gre"),
        ("openvswitch", "", "switch: openvswitch"),
        ("bridge", ", link: {delay: 10ms, emulator: netem}", "netem"),
    ],
)
def test_what_the_kernel_lacks_is_refused_before_anything_runs(
    switch: str, more: str, what: str, probe: Path, image: object, tmp_path: Path, leaves_nothing: None
) -> None:
    (check,) = abilities(probe, [ability for ability in every() if ability.what == what])
    code, said = refused_or_done(STUDY.format(switch=switch, more=more, settings=""), tmp_path)
    assert code == (0 if check.works else 3), said
    assert check.works or (f"  {what}: " in said and check.mend in said)
    assert check.works or not list((tmp_path / "results").glob("runs/*"))


@pytest.mark.parametrize(
    ("settings", "more", "says"),
    [
        (", tx: on", "", "tx on: the userspace datapath"),
        (", offload: on", "", "tso on: the userspace datapath"),
        ("", ", link: {queue: 50}", "queue: 50: with the userspace datapath"),
    ],
)
def test_what_contradicts_the_switch_is_refused_before_anything_runs(
    settings: str, more: str, says: str, image: object, tmp_path: Path, leaves_nothing: None
) -> None:
    code, said = refused_or_done(STUDY.format(switch=NETDEV, more=more, settings=settings), tmp_path)
    assert code == 3, said
    assert says in said
    assert not list((tmp_path / "results").glob("runs/*"))


@pytest.mark.parametrize("driver", ["container", "qemu"])
def test_unfinished_checksums_are_found_on_the_userspace_datapath(
    driver: str, site: Callable[..., Site], leaves_nothing: None
) -> None:
    """Whichever host leaves its checksums to its NIC, veth or virtio, is named; with tx: off both pass."""
    pair = ("client", "server")
    with bed_of(site(), Topology(switch=NETDEV), driver) as bed:
        checksums.hold(bed, [pair])
        for sender, receiver in (pair, pair[::-1]):
            bed.hosts[sender].run(["ethtool", "-K", "eth0", "tx", "on"])
            with pytest.raises(checksums.Unfinished, match=f"^{sender}: TCP segments arrive at {receiver} with incomplete"):
                checksums.hold(bed, [pair])
            bed.hosts[sender].run(["ethtool", "-K", "eth0", "tx", "off"])
        checksums.hold(bed, [pair])
