"""A path that is cut for a while amid a transfer: the stall is found where it was, counted and cautioned."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.faults import carry, counted

from twinbed.analyses.compare.method import analysis as compare
from twinbed.analyses.stalls.method import analysis as stalls
from twinbed.cli.extraction import extracted
from twinbed.contracts.bed import Bed
from twinbed.image import Image

STUDY = """
study: cut
testbeds: {bed: {driver: container}}
workload: {kind: iperf3, duration: 8s}
topology: {pairs: 1, link: {rate: 50mbit}}
instruments: [packets]
replicates: 2
exclude: [stall]
"""
TIMEOUTS = 3
"""Of the client's retransmission timer, until which the path is cut: 0.2, 0.4 and 0.8 s and more, by the kernel's own clock."""


def cut(bed: Bed) -> None:
    """Frames to the server's address are no longer the server's: it takes none, and its own link stays up."""
    server, client = bed.hosts["server"], bed.hosts["client"]
    before = counted(client, "TcpExt", "TCPTimeouts")
    interface = json.loads(server.run(["ip", "-j", "route"]).text)[0]["dev"]
    address = json.loads(server.run(["ip", "-j", "link", "show", "dev", interface]).text)[0]["address"]
    server.run(["ip", "link", "set", "dev", interface, "address", "02:00:00:00:00:99"])
    while counted(client, "TcpExt", "TCPTimeouts") < before + TIMEOUTS:
        time.sleep(0.05)
    server.run(["ip", "link", "set", "dev", interface, "address", address])


def test_a_path_that_is_cut_is_a_stall(image: Image, probe: Path, tmp_path: Path, leaves_nothing: None) -> None:
    carried = carry(STUDY, tmp_path / "results", image, probe, cut)
    hurt, fine = carried.records
    assert hurt["status"] == fine["status"] == "complete", (hurt["reason"], fine["reason"])
    tables = extracted(tmp_path / "results")
    result = stalls.run(tables)
    values = {(row["run"], row["metric"]): row["value"] for row in tables.table("metrics").to_pylist()}
    assert result.stalls and {each.run for each in result.stalls} == {hurt["id"]}
    longest = max(result.stalls, key=lambda each: each.duration_s)
    assert longest.duration_s > 1.0 and longest.unacknowledged_bytes > 0 and longest.retransmissions > 0
    assert (longest.links, longest.waiting, longest.place) == (("client", "server"), "client", "receiver")
    assert longest.reason == "unanswered" and longest.ended_by == "acknowledgment"
    assert values[hurt["id"], "stalls"] >= 1 and values[hurt["id"], "stalled_share"] == pytest.approx(
        longest.duration_s / 8, abs=0.15
    )
    assert (values[fine["id"], "stalls"], values[fine["id"], "stalled_share"]) == (0, 0)
    cautions = {(row["run"], row["kind"]) for row in tables.table("cautions").to_pylist()}
    assert (hurt["id"], "stall") in cautions and (fine["id"], "stall") not in cautions
    excluded = compare.run(tables).excluded
    assert excluded is not None and (excluded.ids, dict(excluded.runs), excluded.decided_after) == (
        {hurt["id"]},
        {"bed": (1, 2)},
        0,
    )
