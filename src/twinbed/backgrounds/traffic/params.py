"""The settings of the background load ``traffic``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from twinbed.contracts.params import BackgroundParams, Unfit
from twinbed.model.topology import Topology
from twinbed.model.units import Rate, Size


class TrafficParams(BackgroundParams):
    """How much traffic of each kind every pair of hosts carries, and which pairs."""

    http: int = Field(
        0, ge=0, le=500, examples=[2], description="HTTP connections of each pair, with one request after another on each"
    )
    http_payload: Size = Field(10_000, ge=1, le=2**20, description="size of the document that is asked for, such as 10kB")
    tcp: int = Field(
        0, ge=0, le=128, examples=[1], description="TCP streams of each pair from client to server, as fast as they go"
    )
    udp: Rate = Field(
        0, ge=0, examples=["50mbit"], description="bits per second of UDP from client to server of each pair, without headers"
    )
    on: Literal["pairs", "bystanders"] = Field(
        "pairs", description="between the workload's own clients and servers, or between topology.bystanders"
    )

    def programs(self) -> Sequence[str]:
        """What hosts must have installed."""
        return (*(("nginx", "stdbuf", "wrk") if self.http else ()), *(("iperf3",) if self.tcp or self.udp else ()))

    def unfit(self, topology: Topology) -> Unfit | None:
        """Traffic between bystanders where there are none."""
        if self.on == "bystanders" and self.programs() and not topology.bystanders:
            return Unfit("on", "there are no bystanders to carry it", "topology: {bystanders: N}, or on: pairs")
        return None

    def estimate_seconds(self) -> float:
        return 0.5 if self.programs() else 0.0
