"""Workload ``iperf3``: TCP or UDP streams from every client to its server, as fast as they go or at a given rate.

Runs ``iperf3`` 3.9 or newer on both ends.  Numbers are sums over the interval records that either end made, not iperf3's own
summaries, some of which are wrong: its UDP jitter is that of the last interval alone, and sums count what was to be omitted.
What arrived, was lost or came out of order is from the server's records, which the client fetches; what was sent and sent again
is from the client's.  The seconds to omit are in neither.

With one pair the values are the run's (host empty); with several, each client's, and the run's for what can be added up.
Tables: ``intervals``, one row an interval and end.

Of clients that did not start together, rates, shares and means are those of the seconds in which all sent (``together``);
counts are those of the whole run.

A stream that arrived faster than it was sent has no rate, but a caution: its server's clock began late.

Limits: an interval that straddles the end is as iperf3 cuts it.  Loss is by sequence numbers, so that what never arrived after
the last datagram that did is not counted; ``sent_datagrams`` and ``received_datagrams`` tell.
Source: iperf3(1) and the JSON of iperf 3.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinbed.contracts.extracted import Extracted
from twinbed.contracts.workload import Described, Workload, WorkloadPlan
from twinbed.metrics.iperf3 import METRICS
from twinbed.model.clients import ClientTimes
from twinbed.model.services import Service
from twinbed.workloads.iperf3.params import Iperf3Params
from twinbed.workloads.iperf3.parse import asked, read
from twinbed.workloads.iperf3.plan import PORT, workload_plan


class Iperf3(Workload[Iperf3Params]):
    """The workload."""

    name = "iperf3"
    params = Iperf3Params
    summary = "bulk streams from clients to servers, TCP or UDP (iperf3): goodput, loss, jitter, retransmissions"
    also = ("iperf", "netperf", "nuttcp", "bulk", "tcp", "udp", "stream", "throughput", "bandwidth")
    files = ("iperf3*",)
    raw = "iperf3's whole report, interval by interval"
    metrics = METRICS
    work = "received_bytes"
    rate = "goodput"

    def plan(self, params: Iperf3Params, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: Iperf3Params) -> Sequence[Service]:
        return [Service("tcp", PORT), *([Service("udp", PORT)] if params.protocol == "udp" else [])]

    def parse(self, params: Iperf3Params, artifacts: Path) -> Extracted:
        return read(params, artifacts)

    def parse_overlap(self, params: Iperf3Params, artifacts: Path, clients: Sequence[ClientTimes]) -> Extracted:
        return read(params, artifacts, clients)

    def described(self, params: Iperf3Params) -> Described:
        """A stream has no loss of datagrams, and datagrams have no window."""
        names = asked(params)
        return Described([metric for metric in self.metrics if metric.name in names], self.work, self.rate)


iperf3 = Iperf3()
