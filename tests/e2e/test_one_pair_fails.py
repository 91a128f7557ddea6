"""One pair of four loses its server: the others carry on to their end and keep what they made; the run says which it was."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.faults import carry

from twinbed.contracts.bed import Bed
from twinbed.image import Image

STUDY = """
study: four
testbeds: {bed: {driver: container}}
topology: {pairs: 4, link: {rate: 10mbit}}
workload: {kind: http, payload: 100kB, duration: 3s, max_requests: 50000000}
instruments: [packets]
replicates: 2
"""


def end_a_server(bed: Bed) -> None:
    host = bed.hosts["server2"]
    host.run(["kill", "-9", host.read("/run/twinbed-nginx.pid").decode().strip()])


def test_the_other_pairs_go_on_to_their_end(image: Image, probe: Path, tmp_path: Path, leaves_nothing: None) -> None:
    carried = carry(STUDY, tmp_path / "results", image, probe, end_a_server)
    assert (carried.ending.complete, carried.ending.failed) == (1, 1), "the study goes on, and the next run has all four"
    failed, complete = sorted(carried.records, key=lambda record: record["status"] == "complete")
    assert (failed["status"], failed["failed_phase"]) == ("failed", "workload")
    # ab counts requests that fail, and goes on.
    assert failed["reason"].startswith("server2: nginx ") and "ended by SIGKILL while the workload ran" in failed["reason"]
    for other in ("client1", "client3", "client4", "server1", "server3", "server4"):
        assert not re.search(rf"\b{other}\b", failed["reason"])
    artifacts = carried.results / "runs" / failed["id"] / "artifacts"
    for pair in (1, 3, 4):
        said = (artifacts / f"client{pair}" / "ab.txt").read_text()
        seconds = re.search(r"Time taken for tests: +([\d.]+) seconds", said)
        assert seconds is not None and float(seconds[1]) >= 3.0
        assert "Failed requests:        0" in said
        assert (artifacts / f"client{pair}" / "ab.tsv").stat().st_size > 0
    # Not only what clients said: the links' captures are there, of the failed pair too.
    assert {path.name for path in (artifacts / "machine").glob("*.pcap")} == {
        f"{role}{pair}.pcap" for role in ("client", "server") for pair in (1, 2, 3, 4)
    }
    assert complete["status"] == "complete" and complete["reason"] is None
    assert json.loads((carried.results / "study.json").read_text())["runs"]


def test_all_that_is_gone_is_named(image: Image, probe: Path, tmp_path: Path, leaves_nothing: None) -> None:
    """A pair's client and another's server; those of the other pairs measure all of their seconds."""

    def end_two(bed: Bed) -> None:
        for name in ("client1", "server3"):
            bed.hosts[name].run(["sh", "-c", "until pkill -9 -x iperf3; do sleep 0.01; done"])

    text = STUDY.replace("kind: http, payload: 100kB, duration: 3s, max_requests: 50000000", "kind: iperf3, duration: 3s")
    carried = carry(text, tmp_path / "results", image, probe, end_two)
    (failed,) = (record for record in carried.records if record["status"] == "failed")
    assert failed["failed_phase"] == "workload"
    client, server = failed["reason"].split("; ")
    assert client.startswith("client1: iperf3 ") and client.endswith("ended by SIGKILL")
    assert server.startswith("server3: iperf3 ") and server.endswith("ended by SIGKILL while the workload ran")
    artifacts = carried.results / "runs" / failed["id"] / "artifacts"
    for pair in (2, 4):
        said = json.loads((artifacts / f"client{pair}" / "iperf3.json").read_text())
        assert said["intervals"][-1]["sum"]["end"] > 2.9 and "error" not in said
