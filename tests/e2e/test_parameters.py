"""Every parameter of links and hosts, over real packets: read back, and seen from outside in what the hosts send and say.

Beds are shared between assertions. What is expected comes from documentation or from a peer: tcpdump, iperf3, ss, tc.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.bed import Bed
from twinbed.contracts.host_settings import OFFLOADS, HostSettings
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError
from twinbed.lab.execution import Outcome, execute
from twinbed.links import network
from twinbed.model.caution import Kind
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.statistics.physics import Accounting, tcp_goodput
from twinbed.statistics.physics import Path as TcpPath
from twinbed.study.loading import load
from twinbed.study.run import Run
from twinbed.workloads.http import CONFIGURATION, HttpParams, workload_plan

PORT = 5201
Make = Callable[..., Site]


@contextlib.contextmanager
def bed_of(site: Make, topology: Topology, driver: str = "container", **settings: Any) -> Iterator[Bed]:
    """A bed in which all that was asked has been read back."""
    plugin = PLUGINS.drivers[driver]
    with plugin.up(plugin.params(**settings), topology, site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        yield bed


def found(bed: Bed, subject: str, setting: str) -> Any:
    return next(item.found for item in bed.applied if (item.subject, item.setting) == (subject, setting))


@contextlib.contextmanager
def serving(bed: Bed) -> Iterator[None]:
    server = bed.hosts["server"].start(["iperf3", "-s", "-p", str(PORT)])
    bed.hosts["server"].listening(PORT, 30.0)
    yield
    server.signal(15)
    server.wait(30.0)


def iperf3(bed: Bed, *options: str) -> dict[str, Any]:
    """What iperf3 says at its end, once the server has been started."""
    said = bed.hosts["client"].run(["iperf3", "-c", bed.addresses["server"], "-p", str(PORT), "-J", *options], limit_s=120)
    return dict(json.loads(said.stdout)["end"])


def payloads(bed: Bed, place: str, interface: str, *options: str) -> list[int]:
    """TCP payload of each packet that tcpdump sees while iperf3 sends 1 MB to the server, which leaves unread what the sockets
    still hold when the client has written all: grown as the kernel likes, that may be most of it."""
    watch = ["tcpdump", "-i", interface, "-nn", "-q", "-l", "--immediate-mode", "-s", "96", "-Z", "root"]
    tcpdump = bed.hosts[place].start([*watch, "tcp", "and", "dst", "host", bed.addresses["server"]])
    tcpdump.says(b"listening on", 30.0)
    with serving(bed):
        iperf3(bed, "-n", "1M", "-w", "128K", *options)
        tcpdump.says(lambda said: sum(map(int, re.findall(rb"tcp (\d+)", said))) >= 300_000, 30.0)
    tcpdump.signal(2)
    return [int(size) for size in re.findall(r"tcp (\d+)", tcpdump.wait(30.0).text)]


SEGMENT = 1448
"""Payload of a full packet with timestamps, at an MTU of 1500."""


@pytest.mark.parametrize("end", ["client", "server"])
def test_each_offload_of_a_container_alone_and_at_one_end(end: str, site: Make) -> None:
    other = "server" if end == "client" else "client"
    for name in OFFLOADS:
        ends = {end: {"driver": "container", name: "off"}, other: {"driver": "container", name: "on"}}
        with bed_of(site, Topology(), "mixed", **ends) as bed:
            assert (found(bed, end, f"offload.{name}"), found(bed, other, f"offload.{name}")) == ("off", "on")
            if name == "tso":
                largest = max(payloads(bed, MACHINE, "p.server"))
                assert (largest <= SEGMENT) == (end == "client"), "the sender's setting decides"


def test_tso_that_the_kernel_takes_back(site: Make) -> None:
    """Without scatter-gather Linux has no segmentation offload, whatever ethtool says of all its parts together."""
    plugin = PLUGINS.drivers["container"]
    with plugin.up(plugin.params(sg="off", tso="on"), Topology(), site()) as bed:
        wrong = {(item.subject, item.setting, item.found) for item in bed.applied if not item.agrees}
        assert wrong == {(host, "offload.tso", "off") for host in ("client", "server")}
        assert max(payloads(bed, MACHINE, "p.client")) == SEGMENT


def test_a_congestion_control_that_is_not_there(site: Make) -> None:
    plugin = PLUGINS.drivers["container"]
    params = plugin.params(congestion_control="nosuch")
    (check,) = [check for check in plugin.check(params) if "nosuch" in check.what]
    assert not check.works
    assert "reno" in check.found
    with pytest.raises(HostError, match=r"should be 'nosuch'; its kernel has .*reno"), plugin.up(params, Topology(), site()):
        pass
    assert all(check.works for check in plugin.check(plugin.params(congestion_control="reno")))


@pytest.mark.parametrize("shaper", ["htb", "tbf"])
def test_rate_burst_and_mtu_of_containers(shaper: str, site: Make) -> None:
    rate, burst, mtu = 20_000_000, 20_000, 1400
    link = Link(rate=rate, burst=burst, shaper=shaper, mtu=mtu)  # type: ignore[arg-type]
    with bed_of(site, Topology(link=link), offload="off") as bed:
        assert found(bed, "p.server", "shaper") == shaper
        assert found(bed, "p.server", "burst") == pytest.approx(burst, rel=0.01)
        assert max(payloads(bed, "server", "eth0")) == mtu - 52
        with serving(bed):
            received = iperf3(bed, "-n", "1500K")["sum_received"]
        carried = tcp_goodput(rate, TcpPath(mtu=mtu, accounting=Accounting.SHAPER)) / 8
        assert received["bytes"] <= carried * received["seconds"] * 1.02 + burst + 2 * mtu


def test_a_queue_holds_what_was_asked_and_drops_the_rest(site: Make) -> None:
    with bed_of(site, Topology(link=Link(rate=5_000_000, burst=3000, queue=5))) as bed:
        with serving(bed):
            # The receiver's buffer holds all that passes: however late it reads, the queue alone loses.
            sent = iperf3(bed, "-u", "-b", "15M", "-l", "1400", "-n", "400K", "-w", "208K")["sum"]
        (leaf,) = [each for each in qdiscs(bed.hosts[MACHINE], "p.server") if each["kind"] == "pfifo"]
        assert leaf["options"]["limit"] == 5
        assert leaf["drops"] >= sent["lost_packets"] > 0


def qdiscs(host: AgentHost, device: str) -> list[dict[str, Any]]:
    return list(json.loads(host.run(["tc", "-j", "-s", "qdisc", "show", "dev", device]).stdout))


def connection(bed: Bed) -> str:
    """What ss says of a connection while it sends."""
    client = bed.hosts["client"]
    with serving(bed):
        sending = client.start(["iperf3", "-c", bed.addresses["server"], "-p", str(PORT), "-t", "20", "-b", "1M"])
        said = ""
        while "bytes_acked" not in said:
            assert not sending.ended
            said = client.run(["ss", "-Htmin", "state", "established", "dport", "=", f":{PORT}"]).text
        sending.signal(9)
        sending.wait(30.0)
    return said


def test_what_a_container_is_told_of_tcp_holds_for_its_connections(site: Make) -> None:
    tcp = {"congestion_control": "reno", "autocorking": "off", "receive_buffer": 300_000, "send_buffer": 200_000}
    with bed_of(site, Topology(), **tcp) as bed:
        assert found(bed, "server", "autocorking") == "0"
        said = connection(bed)
        assert re.search(r"\breno\b", said)
        assert re.search(r"rb300000,", said)
        assert re.search(r"tb200000,", said)


def initial_window(bed: Bed) -> str | None:
    """The congestion window of a connection that has sent nothing yet, as ss has it."""
    with serving(bed):
        script = f"exec 3<>/dev/tcp/{bed.addresses['server']}/{PORT}; ss -Htin dst {bed.addresses['server']}"
        said = bed.hosts["client"].run(["bash", "-c", script]).text
    return found[1] if (found := re.search(r"cwnd:(\d+)", said)) else None


def delayed_acks(bed: Bed, host: str) -> int:
    names, counts = re.findall(r"^TcpExt: (.*)$", bed.hosts[host].read("/proc/net/netstat").decode(), re.MULTILINE)
    return int(dict(zip(names.split(), counts.split(), strict=True))["DelayedACKs"])


def two_writes(bed: Bed) -> int:
    """Acknowledgements that the client delayed while nginx wrote the header and the body of ten answers apart, and Nagle's
    algorithm held each body back until the header was acknowledged."""
    server, client = bed.hosts["server"], bed.hosts["client"]
    asks = HttpParams(keep_alive=True, nagle="on", payload=500)
    for _, path, content in workload_plan(asks, [("client", "server", bed.addresses["server"])]).files:
        server.write(path.replace("{artifacts}", server.artifacts), content)
    before = delayed_acks(bed, "client")
    nginx = server.start(["nginx", "-e", "stderr", "-c", CONFIGURATION.replace("{artifacts}", server.artifacts)])
    server.listening(asks.port, 30.0)
    client.run(["ab", "-k", "-n", "10", asks.url(bed.addresses["server"])], limit_s=30)
    nginx.signal(15)
    nginx.wait(30.0)
    return delayed_acks(bed, "client") - before


def scales_of_windows(bed: Bed) -> list[str]:
    """Of the SYN and of the answer to it, as tcpdump sees them."""
    watch = ["tcpdump", "-i", "p.server", "-nn", "-l", "--immediate-mode", "-c", "2", "-Z", "root"]
    tcpdump = bed.hosts[MACHINE].start([*watch, f"tcp[tcpflags] & tcp-syn != 0 and port {PORT}"])
    tcpdump.says(b"listening on", 30.0)
    with serving(bed):
        iperf3(bed, "-n", "100K")
    return re.findall(r"wscale (\d+)", tcpdump.wait(30.0).text)


def test_routes_and_buffers_of_a_guest_and_a_container_are_alike(site: Make) -> None:
    """Acknowledgements and the initial window, from a guest to a container and the other way round, and the scale of windows,
    which follows from the largest buffer (RFC 7323, 2.3): 6 MiB are 65,535 shifted by 7 bits, as 2^6 leave 4 MiB."""
    ends = {"client": {"driver": "qemu", "memory": "192MiB"}, "server": {"driver": "container"}}
    with bed_of(site, Topology(), "mixed", **ends) as bed:
        assert [found(bed, end, "receive_buffer") for end in ends] == ["4096\t131072\t6291456"] * 2
        assert [found(bed, end, "send_buffer") for end in ends] == ["4096\t16384\t4194304"] * 2
        assert scales_of_windows(bed) == ["7", "7"]
        assert [bed.passport[end]["initial window"] for end in ends] == [10, 10]
        for end in ends:
            assert (found(bed, end, "quickack"), found(bed, end, "initial_window")) == ("off", 10)
            shown = json.loads(bed.hosts[end].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).stdout)
            assert [bed.passport[end]["qdisc"]] == [each["kind"] for each in shown if each.get("root")]
        assert initial_window(bed) == "10"
        assert two_writes(bed) > 0
    shutil.rmtree(site().artifacts)  # what a container left belongs to its own root
    other = {"quickack": "on", "initial_window": 3, "buffers": "native"}
    with bed_of(site, Topology(), "mixed", **{end: {**settings, **other} for end, settings in ends.items()}) as bed:
        assert [bed.passport[end]["initial window"] for end in ends] == [3, 3]
        assert initial_window(bed) == "3"
        assert two_writes(bed) == 0
        most = [int(found(bed, end, "receive_buffer").split()[-1]) for end in ends]
        assert most[0] < 192 * 2**20 / 128
        assert most[1] == int(Path("/proc/sys/net/ipv4/tcp_rmem").read_text().split()[-1])
        guest, container = map(int, scales_of_windows(bed))
        assert container > guest


def test_pinning(site: Make) -> None:
    with bed_of(site, Topology(), cpus="auto") as bed:
        assert Kind.UNPINNED not in [caution.kind for caution in bed.cautions]
        assert len(found(bed, "client", "cpus")) == 1
    with bed_of(site, Topology(), cpus="none") as bed:
        assert Kind.UNPINNED in [caution.kind for caution in bed.cautions]
        assert found(bed, "client", "cpus") == site().cpus


def ttl_at_the_server(bed: Bed) -> set[int]:
    tcpdump = bed.hosts["server"].start(
        ["tcpdump", "-i", "eth0", "-nn", "-v", "-c", "5", "-Z", "root", "tcp", "dst", "port", f"{PORT}"]
    )
    tcpdump.says(b"listening on", 30.0)
    with serving(bed):
        iperf3(bed, "-n", "100K")
    return set(map(int, re.findall(r"ttl (\d+)", tcpdump.wait(30.0).text)))


@pytest.mark.parametrize("routers", [1, 3])
def test_each_router_of_a_chain_takes_one_from_the_ttl(routers: int, site: Make) -> None:
    topology = Topology(routers=routers, pairs=1, link=Link(rate=50_000_000))
    with bed_of(site, topology) as bed:
        default = int(bed.hosts["client"].read("/proc/sys/net/ipv4/ip_default_ttl"))
        assert ttl_at_the_server(bed) == {default - routers}


def an_http_run(topology: str, threads: int = 1) -> Run:
    text = f"""
study: parameters
testbeds: {{bed: {{driver: container}}}}
workload: {{kind: http, threads: {threads}, duration: 30s, max_requests: 50}}
topology: {topology}
instruments: [packets, counters]
replicates: 1
"""
    return design.runs(load(text, "parameters.yaml", catalogue()))[0]


def test_a_workload_passes_routers_with_as_many_threads_as_asked(site: Make) -> None:
    place = site()
    outcome = Outcome()
    execute(an_http_run("{routers: 3}", threads=4), PLUGINS, place, outcome, lambda _: None)
    said = (place.artifacts / "client" / "ab.txt").read_text()
    assert re.search(r"Concurrency Level:\s+4\n", said)
    assert re.search(r"Failed requests:\s+0\n", said)
    assert re.search(r"Complete requests:\s+50\n", said)
    places = {file.parent.name for file in place.artifacts.glob("*/counters.snap")}
    assert places == {MACHINE, "client", "server", "router1", "router2", "router3"}
    assert {file.name for file in place.artifacts.glob("machine/*.pcap")} == {"client.pcap", "server.pcap"}


def shortest_round_trip_s(bed: Bed, *schedule: str) -> float:
    server = bed.hosts["server"].start(["irtt", "server", "-i", "1ms"])
    server.says(b"[ListenerStart]", 20.0)
    when = schedule or ("-i", "5ms", "-d", "300ms")
    # It waits for answers that are missing alone: 4 s where there is none yet, on a busy machine.
    ask = ["irtt", "client", "-Q", *when, "--wait=3x4s", "-o", "-", bed.addresses["server"]]
    said = json.loads(bed.hosts["client"].run(ask, limit_s=120.0).stdout)
    server.signal(15)
    server.wait(30.0)
    assert said["stats"]["packets_received"], said["stats"]
    return float(said["stats"]["rtt"]["min"]) / 1e9


def test_a_guest_router_delays_and_loses_for_containers(site: Make) -> None:
    container = {"driver": "container"}
    ends = {"client": container, "server": container, "router": {"driver": "qemu"}}
    link = Link(delay=0.02, jitter=0.005, loss=0.02, queue=2000, emulated_at="routers")
    with bed_of(site, Topology(routers=1, link=link), "mixed", **ends) as bed:
        assert found(bed, "router", "eth0.loss") == pytest.approx(0.02, rel=1e-5)
        assert found(bed, "router", "eth1.jitter") == pytest.approx(0.005, rel=1e-3)
        # 800 packets each way, of which some are lost; iperf3 would wait for its first one for good. No faster, and for long
        # enough, as an emulated router on a busy machine may stand still for seconds.
        assert shortest_round_trip_s(bed, "-i", "10ms", "-d", "8s") >= 2 * (0.02 - 0.005)
        netem = qdiscs(bed.hosts["router"], "eth1")[0]
        assert (netem["kind"], netem["options"]["limit"]) == ("netem", 2000)
        assert netem["drops"] > 0
        assert ttl_at_the_server(bed) == {63}


def test_guests(site: Make) -> None:
    """Two guests, one bed: processors, TCP's settings, the MTU, offloads one by one at either end, delay made by the hosts."""
    one = {"driver": "qemu", "nic": "virtio-net-pci", "congestion_control": "bbr", "tso": "off"}
    two = {"driver": "qemu", "nic": "e1000", "vcpus": 2, "gro": "off", "receive_buffer": 300_000}
    link = Link(rate=50_000_000, burst=80_000, mtu=1400, delay=0.01, emulated_at="hosts")
    full = 1400 - 52
    with bed_of(site, Topology(link=link), "mixed", client=one, server=two) as bed:
        client, server = bed.hosts["client"], bed.hosts["server"]
        assert (client.run(["nproc"]).text, server.run(["nproc"]).text) == ("1\n", "2\n")
        assert found(bed, "client", "offload.tso") == "off"
        assert found(bed, "server", "offload.gro") == "off"
        assert found(bed, "client", "delay") == pytest.approx(0.01, rel=1e-3)
        assert shortest_round_trip_s(bed) >= 0.02 * (1 - 1e-4)
        assert max(payloads(bed, MACHINE, "p.server")) == full, "nothing is joined without tso"
        assert max(payloads(bed, "server", "eth0")) == full, "nor without gro"
        assert re.search(r"\bbbr\b", connection(bed))
        for host, name in [(host, name) for host in (client, server) for name in OFFLOADS]:
            if (host.name, name) == ("client", "rx"):
                with pytest.raises(HostError, match=r"eth0 cannot have rx off.*virtio_net.*leave rx out"):
                    network.set_offloads(host, "eth0", HostSettings(rx="off"))
                continue
            for value in ("off", "on"):
                asked = HostSettings.model_validate({name: value})
                network.set_offloads(host, "eth0", asked)
                read = {item.setting: item.found for item in network.applied_offloads(host, "eth0", asked)}
                assert read[f"offload.{name}"] == value
        assert max(payloads(bed, "server", "eth0")) > full, "gro joins what arrives together"
        assert max(payloads(bed, "client", "eth0")) > full, "tso leaves it to the NIC"
