"""The settings of a model's hosts. A comment or the manual (docs/model.md) gives the source of each default."""

from __future__ import annotations

from random import Random

from pydantic import Field

from twinbed.contracts.host_settings import BUFFERS, OnOff
from twinbed.contracts.params import DriverParams
from twinbed.model.topology import Topology
from twinbed.model.units import Duration, Rate, Size
from twinbed.testbeds.model.clock import Costs, Handling
from twinbed.testbeds.model.tcp import ETHERNET_BYTES, IP_TCP_BYTES, TIMESTAMPS_BYTES, CongestionControl, Tcp

SHARE, LONGEST_S = 0.5, 30.0
"""A simulation of small requests takes this share of the simulated time; ab's cap of requests ends the longest."""


class ModelSettings(DriverParams):
    # RFC 6928, and Linux since 2.6.39.
    initial_window: int = Field(10, ge=1, le=1000, description="segments that TCP sends before the first acknowledgment")
    # The default of every host that twinbed makes; about half of a buffer holds data.
    receive_buffer: Size = Field(
        BUFFERS["tcp_rmem"][2], ge=4096, le=2**30, description="most bytes of a TCP receiver's buffer; half of it is the window"
    )
    send_buffer: Size = Field(
        BUFFERS["tcp_wmem"][2], ge=4096, le=2**30, description="most bytes of a TCP sender's buffer, and in flight"
    )
    congestion_control: CongestionControl = Field("cubic", description="cubic or reno")
    offload: OnOff = Field("on", description="on: a link gets segments of up to 64 KiB at once; off: single packets")
    frame_overhead: int = Field(
        ETHERNET_BYTES,
        ge=0,
        le=1000,
        description="bytes that a link counts in a frame in addition to its IP packet: shapers count 14, Ethernet 38"
        " (header, checksum, preamble, gap)",
    )
    # The defaults from here on were fitted to containers of one machine (docs/model.md).
    latency: Duration = Field(2e-6, ge=0, le=60, description="one-way time of a packet from host to host on an idle path")
    wake: Duration = Field(36e-6, ge=0, le=1, description="time that a waiting program needs to wake up on an idle CPU")
    client_connection: Duration = Field(28e-6, ge=0, le=1, description="CPU time of the client to open and close a connection")
    client_request: Duration = Field(18e-6, ge=0, le=1, description="CPU time of the client for a request, without its bytes")
    server_connection: Duration = Field(
        22e-6, ge=0, le=1, description="CPU time of the server to accept and close a connection"
    )
    server_request: Duration = Field(12e-6, ge=0, le=1, description="CPU time of the server for a request, without its bytes")
    send_segment: Duration = Field(4.5e-6, ge=0, le=1, description="CPU time to hand a segment or a datagram to the link")
    send_rate: Rate | None = Field(
        26 * 10**9, gt=0, description="bits that a CPU sends in a second, segments not counted; null: no limit"
    )
    receive_segment: Duration = Field(4.3e-6, ge=0, le=1, description="CPU time to take a segment or a datagram from the link")
    receive_rate: Rate | None = Field(
        21 * 10**9, gt=0, description="bits that a CPU receives in a second, segments not counted; null: no limit"
    )
    noise: float = Field(
        0.0,
        ge=0,
        le=2,
        description="standard deviation of the logarithm of a factor on all CPU times, drawn for each run; 0: none",
    )

    def estimate_seconds(self) -> float:
        """Return the seconds that a run adds to its workload."""
        return 0.01

    def workload_seconds(self, estimate_s: float) -> float:
        return min(SHARE * estimate_s, LONGEST_S)

    def tcp(self, topology: Topology, mss_bytes: int | None = None, buffer_bytes: int | None = None) -> Tcp:
        """Return TCP's settings; ``mss_bytes`` and ``buffer_bytes`` replace them if a program asks for these."""
        room = topology.link.mtu - IP_TCP_BYTES
        window = min(self.receive_buffer // 2, self.send_buffer) if buffer_bytes is None else buffer_bytes
        return Tcp(
            mss_bytes=(room if mss_bytes is None else min(mss_bytes, room)) - TIMESTAMPS_BYTES,
            initial_window=self.initial_window,
            window_bytes=window,
            congestion_control=self.congestion_control,
            offload=self.offload == "on",
            frame_overhead_bytes=self.frame_overhead,
        )

    def costs(self, chance: Random) -> Costs:
        """Draw the costs of one run."""
        factor = chance.lognormvariate(0.0, self.noise) if self.noise else 1.0
        return Costs(
            client_connection_s=self.client_connection * factor,
            client_request_s=self.client_request * factor,
            server_connection_s=self.server_connection * factor,
            server_request_s=self.server_request * factor,
            sending=Handling(self.send_segment * factor, _byte_s(self.send_rate) * factor),
            receiving=Handling(self.receive_segment * factor, _byte_s(self.receive_rate) * factor),
            latency_s=self.latency,
            wake_s=self.wake * factor,
        )


def _byte_s(rate: int | None) -> float:
    return 8 / rate if rate else 0.0
