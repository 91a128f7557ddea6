"""Six pairs, of which two are captured: what is estimated of all of them is held against what their clients count."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from tests.command import twinbed

from twinbed import design
from twinbed.registry import catalogue
from twinbed.results.store import Store
from twinbed.study.loading import load

STUDY = """
study: sampled
testbeds: {bed: {driver: container}}
topology: {pairs: 6}
workload: {kind: http, payload: 500B, keep_alive: off, threads: 2, duration: 60s, max_requests: 150}
factors: {instruments.packets.hosts: [all, random 20 %]}
instruments: [packets]
replicates: 1
seed: 11
"""


def test_what_two_of_six_links_say_of_all_is_near_what_all_of_them_say(tmp_path: Path, leaves_nothing: None) -> None:
    file = tmp_path / "sampled.yaml"
    file.write_text(STUDY)
    done = twinbed("run", file, "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr + done.stdout
    results = Store.open(tmp_path / "results" / "sampled")
    planned = {run.id: design.drawn(run) for run in design.runs(load(STUDY, "sampled.yaml", catalogue()))}
    rows = [row for row in results.table("metrics").to_pylist() if not row["direction"]]
    values = {(row["run"], row["metric"]): row for row in rows if not row["host"]}
    of_hosts = [row for row in rows if row["host"]]
    estimates: list[float] = []
    true: list[float] = []
    sizes: dict[bool, list[float]] = {True: [], False: []}
    for record in results.records:
        captures = {Path(each["path"]).stem for each in record.artifacts if each["path"].endswith(".pcap")}
        hosts = {host for pair in ((f"client{i}", f"server{i}") for i in range(1, 7)) for host in pair}
        drawn = record.drawn.get("packets")
        assert drawn == planned[record.id].get("packets"), "the record has what the plan gives again"
        assert captures == (drawn.hosts if drawn else hosts)
        requests = values[record.id, "requests"]
        of_packets = values[record.id, "packets"]
        on_links = {row["host"]: row["value"] for row in of_hosts if (row["run"], row["metric"]) == (record.id, "packets")}
        if drawn:
            assert len(drawn.pairs) == 2 and drawn.of == 6
            of_clients = [on_links[client] for client, _ in drawn.pairs]
            counted = {row["host"]: row["value"] for row in of_hosts if (row["run"], row["metric"]) == (record.id, "requests")}
            assert len(counted) == 6 and sum(counted.values()) == requests["value"]
            a_request = sum(of_clients) / sum(counted[client] for client, _ in drawn.pairs)
            assert of_packets["value"] == pytest.approx(requests["value"] * a_request)
            estimates.append(a_request)
            per_request = values[record.id, "packets_per_request"]
            if len({Fraction(on_links[client]) / Fraction(counted[client]) for client, _ in drawn.pairs}) == 1:
                # By chance both links have as much for a request, which tells nothing of the others.
                assert of_packets["low"] is of_packets["high"] is per_request["high"] is None
            else:
                assert sum(of_clients) <= of_packets["low"] < of_packets["value"] < of_packets["high"]
                assert per_request["high"] == of_packets["high"] / requests["value"]
        else:
            assert of_packets["low"] is of_packets["high"] is None
            assert of_packets["value"] == sum(number for host, number in on_links.items() if host.startswith("client"))
            true.append(of_packets["value"] / requests["value"])
            # A connection a request, as each client's own count says; each thread of ab may open one more at its end.
            assert abs(values[record.id, "connections"]["value"] - requests["value"]) <= 6 * 2 + 0.01 * requests["value"]
        size = sum(each["bytes"] for each in record.artifacts if each["path"].endswith(".pcap"))
        sizes[bool(drawn)].append(size / requests["value"])
    # Whether a FIN comes with what is sent before it depends on how busy the machine is: a packet more or less of ten.
    assert estimates == pytest.approx(true, rel=0.15), "a request takes as many packets, captured or not"
    a_third = sum(sizes[True]) / sum(sizes[False])
    assert 0.2 < a_third < 0.5, "of a request on six pairs, a third of the links has about a third of the bytes"
    cautions = results.table("cautions").to_pylist()
    assert sum(row["kind"] == "sampled" for row in cautions) == 1
