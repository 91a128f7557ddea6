"""The experiment link of two machines is cut for good: the run fails, with what is known of it, and the study goes on."""

from __future__ import annotations

from pathlib import Path

from tests.remote.machines import EXPERIMENT, Machines, until
from tests.remote.studies import at_work, records, study


def test_the_experiment_link_is_cut_for_good_and_the_study_goes_on(two: Machines, tmp_path: Path) -> None:
    # Named, as a NIC without a carrier is found by nothing else: the second run may begin before the link is whole again.
    hosts = {name: {**host, "nic": EXPERIMENT} for name, host in two.settings()["hosts"].items()}
    argv = study(tmp_path, two, {"duration": "6s", "threads": 1, "payload": "100kB"}, replicates=2, rate="20mbit", hosts=hosts)
    with at_work(argv, tmp_path) as process:
        two.has_sent("server", 200_000)
        two.cut(EXPERIMENT, "server")
        until("the run has failed", lambda: len(records(tmp_path)) == 1, 120)
        two.mend(EXPERIMENT, "server")
        assert process.wait(120) == 1
    first, second = records(tmp_path)
    assert (first["status"], first["failed_phase"], second["status"]) == ("failed", "workload", "complete")
    assert "link_down" in {caution["kind"] for caution in first["cautions"]}
    assert "artifacts/server/server.pcap" in {artifact["path"] for artifact in first["artifacts"]}
