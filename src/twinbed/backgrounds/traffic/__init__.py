"""Background load ``traffic``: HTTP requests, TCP streams and UDP beside the workload, between its own hosts or others.

Runs ``nginx`` and ``wrk`` 4 for HTTP, ``iperf3`` 3.9 or newer for TCP and UDP, on ports of their own, as long as the workload
and its instruments do.  ``on: pairs`` shares the workload's links; ``on: bystanders`` runs between further pairs of hosts
(``topology.bystanders``), which share with the workload the machine, its switches and what joins them.  Every kind that is
asked for runs on each pair; of a kind at level 0 nothing is started.

Gives what was really carried, by the tools' own counts: requests by wrk's on each client, goodput and loss by the intervals of
the receiving iperf3 on each server, and all places together (host empty).  The numbers are of all the time that the load ran,
which is a little longer than the workload.

Limits: loss is by sequence numbers, so that what never arrived after the last datagram that did is not counted.
Source: iperf3(1) and what iperf 3.12 says; wrk.c of wrk 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from twinbed.backgrounds.traffic.params import TrafficParams
from twinbed.backgrounds.traffic.parse import read
from twinbed.backgrounds.traffic.plan import traffic_plan
from twinbed.contracts.background import Background, BackgroundPlan
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.place import Places
from twinbed.metrics.background import METRICS


class Traffic(Background[TrafficParams]):
    """The background load."""

    name = "traffic"
    params = TrafficParams
    summary = "HTTP requests, TCP streams and UDP beside the workload, on its own links or others (nginx and wrk, iperf3)"
    also = ("cross_traffic", "http", "iperf3", "udp", "tcp")
    files = ("background-*",)
    raw = "the tools' reports, interval by interval"
    metrics = METRICS
    trials: Mapping[str, TrafficParams] = MappingProxyType(
        {"http": TrafficParams(http=1), "tcp": TrafficParams(tcp=1), "udp": TrafficParams(udp=10**6)}
    )

    def plan(self, params: TrafficParams, places: Places) -> BackgroundPlan:
        return traffic_plan(params, places)

    def extract(self, params: TrafficParams, artifacts: Path) -> Extracted:
        return read(params, artifacts)


traffic = Traffic()
