"""Instrument ``sockets``: the state of the workload's TCP connections in each host's kernel, 100 times a second.

Runs ``twinbed-probe sockets`` on every client and server: struct tcp_info of the sockets between them, by sock_diag(7).
Gives for each host the mean congestion window and smoothed round-trip time, the delivery rate while not limited by the
application, and retransmissions.  It also gives what limited senders: receive window, send buffer, network, or application.

Table: ``sockets`` (a row a sample). docs/sockets.md has the definitions and their sources.

Limits: a connection's state after its last sample is not known. Connections that live between two samples are not seen. The
share of connections that were seen is a metric, with a caution below 90 %. Sampling takes at most 1 % of a CPU: if the kernel
takes longer to answer, samples are rarer. Connections of SSH, of the instrument ``latency`` and of background loads are left
out, by their ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.instrument import Instrument
from twinbed.contracts.params import InstrumentParams
from twinbed.contracts.place import NOT_THE_WORKLOADS, Target
from twinbed.metrics.sockets import METRICS
from twinbed.model.units import Duration, Size

ARTIFACT = "sockets.tcp"
MOST_SAMPLES = 1_000_000
"""The most samples of one socket: 2.8 hours at 100 a second."""
SAMPLE_BYTES = 284
TYPICAL_SOCKETS = 10


class SocketsParams(InstrumentParams):
    """Settings of how often sockets are sampled."""

    interval: Duration = Field(0.01, ge=0.001, le=3600, description="time between samples, such as 10ms")
    limit: Size = Field(
        32 * 2**20,
        ge=2**16,
        le=2**32,
        description="most bytes of a host's samples; near the limit, samples become rarer",
    )

    def estimate_seconds(self) -> float:
        return 0.1

    def estimate_bytes(self, link_rate: int) -> float:
        return TYPICAL_SOCKETS * SAMPLE_BYTES / self.interval


class Sockets(Instrument[SocketsParams]):
    """The instrument."""

    name = "sockets"
    params = SocketsParams
    summary = "the workload's TCP connections in the kernel (tcp_info): congestion window, RTT, what limits senders"
    also = ("ss", "tcp_info", "cwnd", "congestion_window")
    files = ("sockets.tcp",)
    raw = "fields of tcp_info that no table has"
    metrics = METRICS

    def plan(self, params: SocketsParams, target: Target) -> Sequence[Command]:
        peers = sorted({*target.servers.values(), *target.clients.values()})
        if not peers:
            return ()
        argv = (
            *("twinbed-probe", "sockets"),
            *("--out", f"{{artifacts}}/{ARTIFACT}"),
            *("--interval", f"{params.interval:g}"),
            *("--bytes", str(params.limit)),
            *("--samples", str(MOST_SAMPLES)),
            *(word for peer in peers for word in ("--peer", peer)),
            *(word for ports in NOT_THE_WORKLOADS for word in ("--without", ports)),
        )
        return [Command(target.name, argv, ready=Ready(says=b"ready"))]

    def extract(self, params: SocketsParams, artifacts: Path) -> Extracted:
        files = artifacts_named(artifacts, ARTIFACT)
        import pyarrow as pa

        from twinbed.readers.sockets import samples
        from twinbed.readers.sockets.summary import Summary

        hosts = [Summary(samples.read(file)) for file in files]
        return Extracted(
            [value for host in hosts for value in host.values()],
            {"sockets": pa.concat_tables([host.table() for host in hosts])},
            [caution for host in hosts for caution in host.cautions()],
        )


sockets = Sockets()

__all__ = ["Sockets", "SocketsParams", "sockets"]
