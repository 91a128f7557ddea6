"""Whole testbeds and runs through the driver, against the stand-in with real guests: real programs, real packets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minimega.standin import StandIn
from twinbed import design
from twinbed.contracts.place import MACHINE
from twinbed.contracts.site import Site
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.error import HostError, LimitExceeded, ProgramFailed
from twinbed.lab.execution import Outcome, RunFailed, execute
from twinbed.model.run import Phase
from twinbed.model.topology import Link, Topology
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

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
        assert sleeper.wait(30.0).signal == 15
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


@pytest.mark.parametrize(("settings", "works"), [("tx: off", True), ("tx: on", False), ("gro: on", False)])
def test_a_userspace_datapath_takes_finished_checksums_alone(
    userspace: StandIn, site: Callable[..., Site], settings: str, works: bool
) -> None:
    """Open vSwitch drops nothing: the receiver does, and a workload would only see that nothing connects."""
    text = f"""
study: cluster
testbeds: {{bed: {{driver: minimega, base: {userspace.base}, kernel: /opt/k, initrd: /opt/i, {settings}}}}}
workload: {{kind: http, duration: 1s, max_requests: 20}}
instruments: []
replicates: 1
"""
    run = design.runs(load(text, "cluster.yaml", catalogue()))[0]
    if works:
        execute(run, PLUGINS, site(), Outcome(), lambda _: None)
        return
    with pytest.raises(RunFailed) as failed:
        execute(run, PLUGINS, site(), Outcome(), lambda _: None)
    assert failed.value.phase is Phase.CONFIGURE
    assert re.search(
        r"^(client: TCP segments arrive at server|server: TCP segments arrive at client) with incomplete checksums"
        r" \(\d dropped, by /proc/net/snmp there\): .* Set tx: off for this testbed$",
        failed.value.reason,
    )


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


def test_a_capture_holds_what_came_last(real: StandIn, site: Callable[..., Site]) -> None:
    """The stand-in loses the last second, as minimega does (258 of 331 connections were in a file)."""
    params = DRIVER.params(base=str(real.base), kernel="/opt/k", initrd="/opt/i", capture="on")
    with DRIVER.up(params, Topology(), site()) as bed:
        send = f"for i in 1 2 3; do echo twinbed-$i > /dev/udp/{bed.addresses['server']}/9; sleep 0.1; done"
        bed.hosts["client"].run(["bash", "-c", send])
    for guest in ("client", "server"):
        content = (site().place(MACHINE) / f"{guest}.pcap").read_bytes()
        assert [number for number in (1, 2, 3) if f"twinbed-{number}".encode() in content] == [1, 2, 3]


def test_a_container_that_may_not_write_its_sysctls(
    real: StandIn, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked for fails there; that a NIC sends nothing of its own is not asked for."""
    write = AgentHost.write

    def but_no_sysctls(self: AgentHost, path: str, *content: Any, **options: Any) -> None:
        if path.startswith("/proc/sys/"):
            raise HostError(f"{self.name}: writing {path}: Read-only file system (os error 30)")
        write(self, path, *content, **options)

    monkeypatch.setattr(AgentHost, "write", but_no_sysctls)
    settings = {"base": str(real.base), "type": "container", "filesystem": "/opt/root"}
    with DRIVER.up(DRIVER.params(**settings), Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        ipv6 = bed.hosts["client"].read("/proc/sys/net/ipv6/conf/all/disable_ipv6").decode().strip()
        recorded = {(item.subject, item.setting): item.found for item in bed.applied}
        assert recorded["client", "net/ipv6/conf/all/disable_ipv6"] == ipv6
    for asked, refused in (({"autocorking": "off"}, "tcp_autocorking"), ({"buffers": "alike"}, "tcp_rmem")):
        with (
            pytest.raises(HostError, match=rf"{refused}.*Read-only"),
            DRIVER.up(DRIVER.params(**settings, **asked), Topology(), site()),
        ):
            pass


def test_minimegas_own_containers(real: StandIn, site: Callable[..., Site]) -> None:
    params = DRIVER.params(base=str(real.base), type="container", filesystem="/opt/root")
    with DRIVER.up(params, Topology(), site()) as bed:
        assert [item for item in bed.applied if not item.agrees] == []
        (control,) = [item for item in bed.applied if (item.subject, item.setting) == ("client", "control")]
        assert (control.found, control.source) == (
            "cc",
            "no virtio-serial: client: it has no virtio-serial port twinbed.minimega",
        )
        assert bed.hosts["client"].run(["hostname"]).text == "client\n"


def test_guests_that_lack_programs_say_all_of_them_at_once(real: StandIn, site: Callable[..., Site]) -> None:
    params = DRIVER.params(base=str(real.base), kernel="/opt/k", initrd="/opt/i")
    wanted = replace(site(), programs={"client": {"no-such-b", "no-such-a", "ab"}, "server": {"no-such-c"}})
    with (
        pytest.raises(HostError, match="client has no no-such-a, no-such-b; server has no no-such-c"),
        DRIVER.up(params, Topology(), wanted),
    ):
        pass
    assert set(real.spaces) == {"minimega"}


def test_the_preloaded_library_is_in_guests(real: StandIn, site: Callable[..., Site]) -> None:
    """Where it is not, the loader says so on each capture's standard error, and runs end up to a second later."""
    params = DRIVER.params(base=str(real.base), kernel="/opt/k", initrd="/opt/i")
    with DRIVER.up(params, Topology(), site()) as bed:
        for host in bed.hosts.values():
            done = host.run(["cat", "/proc/self/maps"], env={"LD_PRELOAD": f"{host.bin}/libtwinbed_preload.so"})
            assert done.stderr == b""
            assert "libtwinbed_preload.so" in done.text
