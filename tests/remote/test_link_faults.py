"""The experiment link of two machines is cut for a while, or carries nothing: what becomes of the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.remote.machines import EXPERIMENT, Machines, until
from tests.remote.studies import at_work, records, study
from twinbed.contracts.site import Site
from twinbed.hosts.error import HostError
from twinbed.model.topology import Link, Topology
from twinbed.testbeds.remote import remote

ANSWERS_BYTES = 200_000
TIMEOUTS = 2
"""Of the server's retransmission timer, until which the link is cut: 0.2 and 0.4 s and more."""


def test_the_experiment_link_is_cut_for_a_while(two: Machines, tmp_path: Path) -> None:
    workload = {"duration": "6s", "threads": 1, "payload": "100kB"}
    argv = study(tmp_path, two, workload, instruments=["counters"], rate="20mbit")
    with at_work(argv, tmp_path) as process:
        two.has_sent("server", ANSWERS_BYTES)
        two.cut(EXPERIMENT, "client")
        enough = two.timeouts("server") + TIMEOUTS
        until("the server has waited in vain", lambda: two.timeouts("server") >= enough)
        two.mend(EXPERIMENT, "client")
        process.wait(120)
    (record,) = records(tmp_path)
    cautions = {caution["kind"]: caution["detail"] for caution in record["cautions"]}
    assert "client: exp's carrier changed 2 times" in cautions["link_down"]


def test_a_link_that_carries_nothing_fails_the_run_with_its_reason(two: Machines, place: Site) -> None:
    two.silence(EXPERIMENT, "server")
    try:
        with (
            pytest.raises(HostError, match=r"no answer from server \(10\.77\.0\.2\) by exp within 5 s: not even to ARP"),
            remote.up(remote.params(**two.settings()), Topology(link=Link(rate=10**9)), place),
        ):
            pass
    finally:
        two.reconnect(EXPERIMENT, "server")
