"""Instrument ``stations``: the times at which each packet passed the kernels of both hosts, and programs read and wrote it.

Runs ``twinbed-probe stations`` on every client and server: eBPF programs on tracepoints record the time of each TCP packet
between them at

* ``qdisc`` (net_dev_queue) and ``driver`` (net_dev_start_xmit) on its way out,
* ``softirq`` (netif_receive_skb) and ``socket`` (tcp_probe; for the SYN-ACK inet_sock_set_state) on its way in,

and of each call that read, wrote, connected or closed their sockets, or waited (raw_syscalls), with the position in the
socket's stream after it.  Connection and sequence number find a request's bytes in both, so ``twinbed anatomy`` can split the
hosts' steps.  Linux 6.1 and 6.18 have all of these tracepoints; if one is refused, the run fails and names it.

Tables, with times of the host's real-time clock:

* ``stations`` (host, station, connection, time_ns, end_ns, sequence, bytes, flags, thread, process): a row for each packet at
  each station, and for each call;
* ``station_connections`` (host, connection, own_address, own_port, other_address, other_port);
* ``station_probes`` (clock, kernel, share, records, lost, missed, beyond): a row a host.

Limits: it costs more than any other instrument, up to a third of the requests of a workload that does little else
(docs/performance.md).  Parts and steps include this cost: compare testbeds that all have it.  A packet is one for the kernel;
acknowledgements alone are not recorded.  Calls by io_uring and splice are not seen.  Every container has its own programs,
which see the packets of others and ignore them.  Connections of SSH, of the instrument ``latency`` and of background loads are
left out, by their ports.  Needs Linux 5.11 with BTF, and root.
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
from twinbed.metrics.events import STATION_METRICS
from twinbed.model.units import Size
from twinbed.readers.stations import read_place

ARTIFACT = "kernel.stations"
RING_BYTES = 8 * 2**20
PROGRAM_BYTES = 4 * 2**20
"""Kernel memory for the programs and their notes on threads."""
REQUEST_BYTES = 16 * 40
"""Bytes of a request's records on one host."""
TYPICAL_REQUESTS_PER_S = 5000


class StationsParams(InstrumentParams):
    """Settings of how much is recorded."""

    share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the connections to record, the same ones on both hosts, chosen by a hash of their ends",
    )
    limit: Size = Field(
        64 * 2**20, ge=2**16, le=2**34, description="most bytes of a host's records; later packets are only counted"
    )

    def estimate_seconds(self) -> float:
        return 0.3

    def estimate_bytes(self, link_rate: int) -> float:
        return TYPICAL_REQUESTS_PER_S * REQUEST_BYTES * self.share


class Stations(Instrument[StationsParams]):
    """The instrument."""

    name = "stations"
    params = StationsParams
    summary = "times at which each packet passed the stations of both kernels, and programs read and wrote it (eBPF)"
    files = ("kernel.stations",)
    raw = "stations of packets outside sampled requests"
    metrics = STATION_METRICS

    def plan(self, params: StationsParams, target: Target) -> Sequence[Command]:
        peers = sorted({*target.servers.values(), *target.clients.values()})
        if not peers:
            return ()
        argv = (
            *("twinbed-probe", "stations"),
            *("--out", f"{{artifacts}}/{ARTIFACT}"),
            *("--bytes", str(params.limit)),
            *("--ring", str(RING_BYTES)),
            *("--share", f"{params.share:.9g}"),
            *(("--own-clock",) if target.own_kernel else ()),
            *(word for peer in peers for word in ("--peer", peer)),
            *(word for ports in NOT_THE_WORKLOADS for word in ("--without", ports)),
        )
        return [Command(target.name, argv, ready=Ready(says=b"ready"), memory_bytes=RING_BYTES + PROGRAM_BYTES, real_root=True)]

    def extract(self, params: StationsParams, artifacts: Path) -> Extracted:
        files = artifacts_named(artifacts, ARTIFACT)
        import pyarrow as pa

        places = [read_place(file) for file in files]
        return Extracted(
            [place.value() for place in places],
            {
                "stations": pa.concat_tables([place.rows for place in places]),
                "station_connections": pa.concat_tables([place.connections for place in places]),
                "station_probes": pa.concat_tables([place.probe() for place in places]),
            },
            [caution for place in places for caution in place.cautions()],
        )


stations = Stations()

__all__ = ["Stations", "StationsParams", "stations"]
