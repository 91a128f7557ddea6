"""The instrument ``fingerprint`` on real hosts: the window scale alone tells a guest from a container, and goes when buffers
are alike; nothing is sent out of the lab."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from twinbed import design
from twinbed.contracts.site import Site
from twinbed.instruments.fingerprint import FingerprintParams, fingerprint
from twinbed.instruments.packets import PacketsParams, packets
from twinbed.lab.execution import Outcome, execute
from twinbed.model.run import Phase
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

BED = """
study: fingerprint
testbeds:
  bed:
    driver: mixed
    client: {{driver: container, buffers: {buffers}}}
    server: {{driver: qemu, nic: e1000, memory: 192MiB, buffers: {buffers}}}
workload: {{kind: http, duration: 30s, max_requests: 20}}
instruments: {{packets: , fingerprint: {{nmap: off}}}}
replicates: 1
"""
LOOKS = ("mss", "ttl", "df", "tcp_options", "ecn", "ip_id", "mac_local")
"""What is the same of a container and a guest."""


@pytest.mark.parametrize(("buffers", "is_alike"), [("native", False), ("alike", True)])
def test_the_window_scale_tells_hosts_apart_unless_buffers_are_alike(
    buffers: str, is_alike: bool, site: Callable[..., Site], leaves_nothing: None
) -> None:
    run = design.runs(load(BED.format(buffers=buffers), "fingerprint.yaml", catalogue()))[0]
    place, outcome, phases = site(), Outcome(), list[Phase]()
    execute(run, PLUGINS, place, outcome, phases.append)
    assert phases.index(Phase.WORKLOAD) + 1 == phases.index(Phase.EXAMINE) == phases.index(Phase.COLLECT) - 1
    rows = packets.extract(PacketsParams(), place.artifacts).tables["fingerprints"].to_pylist()
    client, server = ({row["feature"]: row["text"] for row in rows if row["host"] == host} for host in ("client", "server"))
    assert [client[name] for name in LOOKS] == [server[name] for name in LOOKS]
    assert (client["window_scale"] == server["window_scale"]) == is_alike
    if is_alike:
        # 6 MiB do not fit 16 bits shifted by 6.
        assert client["window_scale"] == "7"
    found = fingerprint.extract(FingerprintParams(), place.artifacts)
    assert not found.cautions
    looks = {(row["host"], row["feature"]): row["text"] for row in found.tables["fingerprints"].to_pylist()}
    assert looks["server", "dmi_sys_vendor"] == "QEMU"
    assert looks["server", "net_drivers"] == "e1000"
    assert looks["server", "icmp_ttl"] == "64"
    assert looks["server", "http_not_found_status"] == "HTTP/1.1 404 Not Found"
    assert float(looks["client", "cpuid_cost_s"] or 0) > 0
    # What examined the server was not captured: each link has the workload's requests alone.
    assert packets.extract(PacketsParams(), place.artifacts).tables["connections"].num_rows == 2 * 20


HELLOS = """
study: hellos
testbeds: {{bed: {{driver: container}}}}
workload: {{kind: http, https: on, duration: 30s, max_requests: 5}}
instruments: {{packets: {{snaplen: {snaplen}}}}}
replicates: 1
"""


@pytest.mark.parametrize("snaplen", [96, 2048])
def test_hellos_are_those_of_both_programs_where_packets_are_whole(
    snaplen: int, site: Callable[..., Site], leaves_nothing: None
) -> None:
    run = design.runs(load(HELLOS.format(snaplen=snaplen), "hellos.yaml", catalogue()))[0]
    place = site()
    execute(run, PLUGINS, place, Outcome(), list[Phase]().append)
    rows = packets.extract(PacketsParams(), place.artifacts).tables["fingerprints"].to_pylist()
    hashes = {(row["host"], row["feature"]): (row["text"], row["seen"]) for row in rows if row["feature"].startswith("ja")}
    assert hashes.keys() == {("client", "ja3"), ("client", "ja4"), ("server", "ja3s")}
    if snaplen == 96:
        assert set(hashes.values()) == {(None, 0)}
    else:
        # tests/golden/tls: ab with the same library, by tshark; it asks an address, and offers no protocol.
        assert hashes["client", "ja3"] == ("c12b4ccd5320bbb380ca1a9df90f771d", 5)
        assert (hashes["client", "ja4"][0] or "").startswith("t13i3")
        assert hashes["server", "ja3s"][1] == 5


STUDY = """
study: inside
testbeds: {bed: {driver: container}}
workload: {kind: http, duration: 30s, max_requests: 20}
instruments: [fingerprint]
replicates: 1
"""


def test_nothing_leaves_the_lab(tmp_path: Path, leaves_nothing: None) -> None:
    """In a network namespace with nothing but a loopback that is down, all is found and not a packet is tried on it."""
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    argv = [sys.executable, "-m", "twinbed.cli.main", "run", str(study), "-o", str(tmp_path / "results")]
    devices = tmp_path / "devices"
    script = '"$@"; code=$?; cat /proc/net/dev >"$0"; exit $code'
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script, str(devices), *argv], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode in (0, 4, 5), done.stdout + done.stderr
    (loopback,) = devices.read_text().splitlines()[2:]
    name, *counters = loopback.split()
    assert (name, set(counters)) == ("lo:", {"0"})
    (part,) = (tmp_path / "results/tables/fingerprints").glob("*.parquet")
    rows = {row["feature"]: row["text"] for row in pq.ParquetFile(part).read().to_pylist() if row["host"] == "server"}
    assert rows["nmap_t1"]
    assert rows["nmap_service"] == f"http nginx {(rows['http_get_server'] or '').partition('/')[2]}"
