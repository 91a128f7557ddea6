"""The experiment link of two machines is cut, or carries nothing; a machine's disk fills up: what becomes of the runs."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.remote.conftest import differences
from tests.remote.machines import EXPERIMENT, FOLDER, Machines, machines, state, until
from tests.remote.studies import begun, records, study
from twinbed.hosts.error import HostError
from twinbed.hosts.site import Site
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.remote import remote

CUT_S = 10.0


def test_the_experiment_link_is_cut_for_a_while(two: Machines, tmp_path: Path) -> None:
    process = subprocess.Popen(study(tmp_path, two, {"duration": "12s", "threads": 1}), stderr=subprocess.DEVNULL)
    until("the workload runs", begun(tmp_path, "workload"), 60)
    two.cut(EXPERIMENT, "client")
    time.sleep(CUT_S)
    two.mend(EXPERIMENT, "client")
    process.wait(120)
    (record,) = records(tmp_path)
    cautions = {caution["kind"]: caution["detail"] for caution in record["cautions"]}
    assert "client: exp's carrier changed 2 times" in cautions["link_down"]


def test_the_experiment_link_is_cut_for_good_and_the_study_goes_on(two: Machines, tmp_path: Path) -> None:
    argv = study(tmp_path, two, {"duration": "2s", "threads": 1}, replicates=2)
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    until("the workload runs", begun(tmp_path, "workload"), 60)
    two.cut(EXPERIMENT, "server")
    until("the run has failed", lambda: len(records(tmp_path)) == 1, 120)
    two.mend(EXPERIMENT, "server")
    assert process.wait(120) == 1
    first, second = records(tmp_path)
    assert (first["status"], first["failed_phase"], second["status"]) == ("failed", "workload", "complete")
    assert "link_down" in {caution["kind"] for caution in first["cautions"]}
    assert "artifacts/server/server.pcap" in {artifact["path"] for artifact in first["artifacts"]}


def test_a_link_that_carries_nothing_fails_the_run_with_its_reason(two: Machines, place: Site) -> None:
    two.silence(EXPERIMENT, "server")
    try:
        with (
            pytest.raises(HostError, match=r"nothing comes back from server \(10\.77\.0\.2\) by exp within 5 s: not even ARP"),
            remote.up(remote.params(**two.settings()), Topology(link=Link(rate=10**9)), place),
        ):
            pass
    finally:
        two.reconnect(EXPERIMENT, "server")


def test_the_disk_of_a_host_is_full(tmp_path: Path) -> None:
    (tmp_path / "machines").mkdir()
    with machines(tmp_path / "machines", disk="8m") as made:
        before = {name: state(space) for name, space in made.hosts.items()}
        done = subprocess.run(
            study(tmp_path, made, {"duration": "6s"}, replicates=2), capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 1, done.stderr
        first, second = records(tmp_path)
        for record in (first, second):
            assert record["status"] == "failed"
            assert "No space left on device" in record["reason"]
        assert differences(before, made) == {}
        assert "leases" not in made.hosts["client"].run("find", f"{FOLDER}/leases", "-mindepth", "1")
