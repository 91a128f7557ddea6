"""Whole runs on two machines over real SSH: what is set, read back, recorded and collected, and that it is put back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command import twinbed
from tests.remote.machines import Machines
from twinbed.cli.extraction import extracted
from twinbed.contracts.site import Site
from twinbed.links import network
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.remote import remote

STUDY = {
    "study": "remote",
    "workload": {"kind": "http", "duration": "1s", "max_requests": 2000},
    "instruments": ["packets", "counters", "syscalls"],
    "replicates": 1,
}


def studied(folder: Path, made: Machines, link: dict[str, Any], **settings: Any) -> Path:
    """A study file (YAML takes JSON)."""
    testbed = {"driver": "remote", **made.settings(**settings)}
    file = folder / "study.yaml"
    file.write_text(json.dumps({**STUDY, "testbeds": {"physical": testbed}, "topology": {"link": link}}))
    return file


@pytest.mark.parametrize("image", ["archive", "none"])
def test_a_whole_study(image: str, two: Machines, tmp_path: Path) -> None:
    link = {"rate": "200mbit", "shaper": "tbf", "mtu": 1400}
    study = studied(tmp_path, two, link, image=image, offload="off", congestion_control="reno")
    checked = twinbed("check", str(study))
    assert "host server: NIC" in checked.stdout, checked.stdout + checked.stderr

    done = twinbed("run", str(study), "-o", str(tmp_path / "results"), "--no-report")
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "results" / "runs").glob("[0-9a-f]*")

    applied = {(item["subject"], item["setting"]): item["found"] for item in json.loads((run / "applied.json").read_text())}
    for number, host in enumerate(("client", "server"), start=1):
        assert applied[host, "address"] == f"10.77.0.{number}/24"
        assert applied[host, "mtu"] == 1400
        assert applied[host, "shaper"] == "tbf"
        assert applied[host, "rate"] == 200_000_000
        assert applied[host, "congestion_control"] == "reno"
        assert applied[host, "offload.tso"] == "off"
        assert applied[host, "way"] == "exp"
        assert applied[host, "speed"] == 10_000_000_000

    passport = json.loads((run / "passport.json").read_text())
    assert {"client", "server"} <= set(passport) and "machine" not in passport
    facts = passport["client"]
    assert (facts["NIC"], facts["NIC driver"], facts["NIC duplex"], facts["NIC bus"]) == ("exp", "veth", "Full", None)
    assert facts["sshd"].startswith("OpenSSH_")
    assert facts["kernel"] and facts["cpu"] and facts["system"] and facts["clock source"]
    assert facts["tools"] == ("the host's own" if image == "none" else "the image's")
    if image == "none":
        said = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
        assert facts["nginx version"] == said.strip()

    record = json.loads((run / "run.json").read_text())
    # A machine that is busy cannot fill the link when it is checked, nor tell its own pauses from the link's, and says so.
    untold = {"link_not_filled", "link_not_measured", "link_untold"}
    assert {caution["kind"] for caution in record["cautions"]} - untold == {"stand_in"}
    kept = {artifact["path"] for artifact in record["artifacts"]}
    for name in (
        "client/client.pcap",
        "server/server.pcap",
        "client/counters.snap",
        "server/system-calls.count",
        "client/ab.txt",
    ):
        assert f"artifacts/{name}" in kept

    table = _metrics(tmp_path / "results")
    # ab's connections, of a single request each: none was lost between the two captures.
    assert table["requests_per_second"] > 10
    assert table["path_lost_packets"] == 0
    assert table["connections"] == pytest.approx(table["requests"], abs=1)


def _metrics(results: Path) -> dict[str, float]:
    """Metric -> value of the whole run, or of the first host."""
    found: dict[str, float] = {}
    for row in extracted(results).table("metrics").to_pylist():
        if row["value"] is not None:
            found.setdefault(row["metric"], row["value"])
    return found


def test_a_link_at_the_speed_of_the_nics_is_not_shaped(two: Machines, place: Site) -> None:
    params = remote.params(**two.settings())
    with remote.up(params, Topology(link=Link(rate=10**10)), place) as bed:
        found = {(item.subject, item.setting): item for item in bed.applied}
        assert found["client", "speed"].asked == found["client", "speed"].found == 10**10
        assert found["client", "shaper"].asked is None
        assert found["client", "shaper"].found == "noqueue"


def test_hosts_keep_the_addresses_that_they_are_given(two: Machines, place: Site) -> None:
    hosts = two.settings()["hosts"]
    for number, host in enumerate(hosts.values(), start=4):
        host["address"] = f"172.31.9.{number}/28"
    with remote.up(remote.params(hosts=hosts, image="none"), Topology(), place) as bed:
        assert bed.addresses == {"client": "172.31.9.4", "server": "172.31.9.5"}
        server = bed.hosts["server"].start(["iperf3", "-s", "-1", "-p", "5000"])
        bed.hosts["server"].listening(5000, 30.0)
        sent = bed.hosts["client"].run(["iperf3", "-c", "172.31.9.5", "-p", "5000", "-n", "1M", "-w", "128K", "-J"])
        assert json.loads(sent.stdout)["end"]["sum_received"]["bytes"] >= 150_000
        assert server.wait(30.0).code == 0


def test_a_nic_that_was_down_is_taken_up_and_down_again(two: Machines, place: Site) -> None:
    client = two.hosts["client"]
    client.run("ip", "link", "set", "exp", "down")
    settings = two.settings()
    settings["hosts"]["client"]["nic"] = "exp"
    try:
        with remote.up(remote.params(**settings), Topology(), place) as bed:
            assert [item for item in bed.applied if not item.agrees] == []
        assert "state DOWN" in client.run("ip", "link", "show", "exp")
        assert "192.0.2.1/24" in client.run("ip", "addr", "show", "exp")
    finally:
        text = (
            "link set exp up\naddr replace 2001:db8::1/64 dev exp nodad\nroute replace 198.51.100.0/24 via 192.0.2.77 dev exp\n"
        )
        client.run("ip", "-batch", "-", text=text)


@pytest.mark.parametrize(("function", "setting"), [("set_sysctls", "congestion_control"), ("set_offloads", "offload.tso")])
def test_what_is_not_as_asked_does_not_agree(
    function: str, setting: str, two: Machines, place: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, function, lambda *_: None)
    params = remote.params(**two.settings(offload="off", congestion_control="reno"))
    with remote.up(params, Topology(), place) as bed:
        assert {(item.subject, item.setting) for item in bed.applied if not item.agrees} >= {
            ("client", setting),
            ("server", setting),
        }
