"""The instrument ``latency`` on real hosts: what is done to packets and clocks is seen, and where it was done."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinbed import design
from twinbed.contracts.command import Command
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.site import Site
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.instruments.latency import latency
from twinbed.lab.execution import Outcome, execute
from twinbed.model.caution import Kind
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.workloads.http import http

pytestmark = [pytest.mark.privileged, pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces")]

THERE, BACK = "client_to_server", "server_to_client"
CLOCKS = {Kind.CLOCK_STEP, Kind.CLOCKS_APART}
Place = Callable[..., Site]
GUESTS = {
    "client": "mixed, client: {driver: qemu}, server: {driver: container}",
    "server": "mixed, client: {driver: container}, server: {driver: qemu}",
}
"""By who is a guest, with a clock of its own; the other end is a container."""


class Doing(Workload[Any]):
    """A workload that does one thing to a host once the probes are on their way, and then lets them go on for 2 s, or until
    another command ends."""

    def __init__(self, host: str, what: str, until: str = "sleep 2") -> None:
        self.host, self.what, self.until = host, what, until

    def plan(self, params: Any, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        doing = f"sleep 0.5 && {self.what} && {self.until}"
        return WorkloadPlan(clients=[Command(self.host, ("sh", "-c", doing), "doing.txt")])

    def parse(self, params: Any, artifacts: Path) -> Extracted:
        return Extracted()


def measured(site: Place, driver: str, workload: Any, more: str = "") -> Extracted:
    text = f"""
study: latency
testbeds: {{bed: {{driver: {driver}}}}}
{more}
workload: {{kind: http, duration: 3s, max_requests: 500000}}
instruments: [latency]
replicates: 1
"""
    run = design.runs(load(text, "latency.yaml", catalogue()))[0]
    place = site()
    execute(run, replace(PLUGINS, workloads={"http": workload}), place, Outcome(), lambda _: None)
    return latency.extract(run.instruments["latency"].params, place.artifacts)


def of(found: Extracted, host: str = "") -> dict[tuple[str, str], Any]:
    return {(value.metric, value.direction): value.value for value in found.values if value.host == host}


def kinds(found: Extracted) -> set[Kind]:
    return {caution.kind for caution in found.cautions}


def test_containers_share_a_clock(site: Place, leaves_nothing: None) -> None:
    found = measured(site, "container", http)
    values = of(found)
    assert not kinds(found)
    assert values["probes_sent", ""] > 50
    assert values["probe_loss", ""] == values["probe_loss", THERE] == values["probe_loss", BACK] == 0
    assert values["one_way_delay_min", THERE] > 0 and values["one_way_delay_min", BACK] > 0
    arrived = [row for row in found.tables["probes"].to_pylist() if row["rtt_s"] is not None]
    apart = [abs(row[f"{THERE}_s"] + row[f"{BACK}_s"] - row["rtt_s"]) / row["rtt_s"] for row in arrived]
    # Of most: a busy machine may stop a program between its readings of two clocks.
    assert statistics.median(apart) < 0.02, "there and back, by two kinds of clocks"
    assert values["jitter", THERE] is not None and values["jitter", BACK] is not None
    assert abs(of(found, "client")["clock_offset", ""]) <= of(found, "client")["clock_offset_bound", ""]


def test_pairs_are_told_apart(site: Place, leaves_nothing: None) -> None:
    found = measured(site, "container", Doing("client2", "true"), "topology: {pairs: 2}")
    sent = [of(found, host)["probes_sent", ""] for host in ("client1", "client2", "")]
    assert sent[0] + sent[1] == sent[2]
    rows = found.tables["clocks"].to_pylist()
    assert [(row["client"], row["server"]) for row in rows] == [("client1", "server1"), ("client2", "server2")]


def test_what_is_done_to_a_guest_s_packets_is_seen_one_way(site: Place, leaves_nothing: None) -> None:
    """With 25 % loss of 150 probes and more, 0.07 to 0.43 is within five standard errors."""
    # As many packets reached netem, whenever a busy machine let them.
    counted = "tc -s qdisc show dev eth0 | sed -n 's/.* \\([0-9]*\\) pkt (dropped \\([0-9]*\\),.*/\\1 + \\2/p'"
    enough = f"while [ $(($({counted}))) -lt 200 ]; do sleep 0.1; done"
    what = Doing("client", "tc qdisc add dev eth0 root netem delay 40ms 15ms loss 25%", enough)
    found = measured(site, GUESTS["client"], what)
    values, probes = of(found), sorted(found.tables["probes"].to_pylist(), key=lambda row: row["sequence"])
    known = [at for at, row in enumerate(probes) if row["rtt_s"] is not None and row["rtt_s"] < 0.025]
    after = probes[known[-1] + 1 if known else 0 :]  # netem holds none for less
    assert len(after) >= 150
    assert 0.07 < sum(row["rtt_s"] is None for row in after) / len(after) < 0.43
    assert values["probe_loss", THERE] > 0.02, "of all probes, also those before it"
    assert values["probe_loss", BACK] == 0
    assert values["probe_loss", ""] == values["probe_loss", THERE]
    # 0.45 of the 30 ms over which netem spreads its delays; overtaking from 10 ms on.
    assert values["jitter_max", THERE] > 0.006
    assert values["probes_reordered", THERE] > 0
    assert kinds(found) == {Kind.CLOCKS_APART}
    assert values["one_way_delay_mean", THERE] is None


def test_a_clock_that_is_set_while_measuring_is_found(site: Place, leaves_nothing: None) -> None:
    found = measured(site, GUESTS["server"], Doing("server", "date -s '+7 seconds'"))
    assert kinds(found) == {Kind.CLOCK_STEP}
    # A guest that stands still on a busy machine may have its clock set after it, by less.
    caution = max(found.cautions, key=lambda each: abs(float(each.detail.split()[2])))
    assert caution.detail.startswith("server: by +")
    by_s = float(caution.detail.split()[2])
    # date works in whole seconds after rounding down, so up to one less; and less still by how long it takes.
    assert 5 < by_s < 7.1
    values = of(found)
    # A guest that stands still for a second or two delays its packets by as much; the step would be in it whole.
    assert values["jitter_max", THERE] < 4 and values["jitter_max", BACK] < 4
    assert values["one_way_delay_max", BACK] is None
    assert abs(of(found, "client")["clock_drift", ""] or 0) < 1000
