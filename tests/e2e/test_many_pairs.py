"""One, two and four pairs that share an uplink: UDP is lost there, the ledger says so, and the report says how many fit."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from tests.command import twinbed

from twinbed.results.store import Store

# An uplink of 10 Mbit/s holds two pairs of 4, and of four loses more than its queue of 1000 packets can bear in four seconds.
# The queue is full after two, and not at all without one of them: iperf3 asks for a stream of UDP by one datagram, and fails
# where that of a client that a busy machine starts late is lost.
STUDY = """
study: many
testbeds: {bed: {driver: container}}
topology: {kind: star, uplink: 10mbit}
workload: {kind: iperf3, protocol: udp, rate: 4mbit, payload: 1400B, duration: 4s}
factors: {pairs: [1, 2, 4]}
instruments: [counters]
replicates: 2
"""


def test_what_many_pairs_lose_is_explained_and_how_many_fit_is_said(tmp_path: Path, leaves_nothing: None) -> None:
    study = tmp_path / "many.yaml"
    study.write_text(STUDY)
    done = twinbed("run", study, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "How many fit" in done.stdout and "oodput per pair at least 90 %" in done.stdout

    results = Store.open(tmp_path / "results" / "many")
    pairs = {record.id: record.levels["pairs"] for record in results.records}
    totals: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    of_run: dict[str, set[str]] = defaultdict(set)
    for row in results.table("losses").to_pylist():
        of_run[row["run"]].add(row["pair"])
        if row["direction"] == "client_to_server":
            totals[row["run"]][row["stage"]] += row["packets"] or 0.0
    assert {run: len(names) for run, names in of_run.items()} == pairs
    for run, stages in totals.items():
        lost = stages.pop("sent") - stages.pop("received")
        unexplained = stages.pop("unexplained")
        assert abs(sum(stages.values()) + unexplained - lost) < 1e-6
        if pairs[run] == 4:
            assert stages["uplink"] > 100
            assert abs(unexplained) <= 0.01 * lost

    page = (tmp_path / "results" / "many" / "report.html").read_text()
    section = page[page.index('id="fitting"') :].split("</section>")[0]
    assert "Where packets were lost" in section and ">uplink</th>" in section


@pytest.mark.parametrize(("hard", "code"), [(4096, 0), (200, 3)])
def test_a_run_may_open_as_many_files_as_it_needs_or_is_refused(
    hard: int, code: int, tmp_path: Path, leaves_nothing: None
) -> None:
    """Ten pairs need 220; the agent that starts them would be at its end with 64."""
    study = tmp_path / "ten.yaml"
    study.write_text(
        "study: ten\ntestbeds: {bed: {driver: container}}\ntopology: {pairs: 10}\n"
        "workload: {kind: http, duration: 30s, max_requests: 20}\n"
        "instruments: []\nreplicates: 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "twinbed.cli.main", "run", str(study), "--no-report"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
    )
    assert done.returncode == code, done.stderr
    if code:
        assert "file descriptors, testbed bed: 220 file descriptors are needed (20 hosts, each a container)" in done.stderr
        assert "200 are available" in done.stderr and "at most 6 pairs of these fit" in done.stderr
        assert not list((tmp_path / "results" / "ten").glob("runs/*"))
