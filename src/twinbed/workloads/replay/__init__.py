"""Workload ``replay``: a capture is sent again between two hosts, what its clients sent by the client and what its servers sent
by the server, when the capture has it.

Runs ``tcpreplay`` 4.4 on both hosts, started together, and ``tcpdump`` on both for what arrives.  The capture is split and
rewritten before the run (``readers/replay/sides``).

Limits: both programs are let go at one moment, but what each does before its first packet (loading, opening the interface)
takes 1 to 20 ms on containers, and some 100 ms on emulated guests: ``replay_start_skew`` has by how much the sides are apart,
and where it is more than 1 ms a caution says that an answer may come before what it answers.  A slower ``speed`` makes room.
Nothing answers.  A packet goes out at its time whether or not what it answers has arrived: there is no TCP that sends less or
again where a link is slow, so that rates above a link's are lost in its queue.  IPv4 over Ethernet; fragments and packets
longer than 1500 bytes are left out.  Only in labs: hosts over SSH are refused, since replayed packets belong on no network
but the lab's. Source: tcpreplay(1) of 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twinbed.contracts.extracted import Extracted
from twinbed.contracts.workload import Workload, WorkloadPlan
from twinbed.metrics.replay import METRICS
from twinbed.model.services import Service
from twinbed.workloads.replay.params import ReplayParams
from twinbed.workloads.replay.parse import read
from twinbed.workloads.replay.plan import workload_plan


class Replay(Workload[ReplayParams]):
    """The workload."""

    name = "replay"
    params = ReplayParams
    summary = "a capture sent again by both sides, its timing kept (tcpreplay)"
    also = ("pcap", "tcpreplay", "capture", "playback")
    files = ("tcpreplay.*", "replay.json", "arrived.cap", "arrived.tcpdump", "arrived.tcpdump.err", "warm-up.*")
    raw = "single packets of what arrived"
    metrics = METRICS
    work = "sent_packets"
    rate = "sent_packets_per_second"

    def plan(self, params: ReplayParams, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: ReplayParams) -> Sequence[Service]:
        return [Service(protocol, None) for protocol in ("tcp", "udp", "icmp")]

    def parse(self, params: ReplayParams, artifacts: Path) -> Extracted:
        return read(artifacts)


replay = Replay()
