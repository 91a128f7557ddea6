"""The settings of the workload ``iperf3``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from twinbed.contracts.params import WorkloadParams
from twinbed.model.declaration import Also
from twinbed.model.units import Duration, Rate, Size

BEGIN_AND_END_S = 1.0
"""Server start, the control connection, and the exchange of results, beside the time measured."""
LEAST_DATAGRAM_BYTES = 16
"""iperf3's own header in every datagram: two times and a counter."""
LARGEST_DATAGRAM_BYTES = 65507
"""IPv4's, less the headers of IP and UDP."""


class Iperf3Params(WorkloadParams):
    """What clients send to servers. TCP's congestion control is a setting of the hosts (``testbed.congestion_control``), or of
    iperf3's sockets alone."""

    protocol: Literal["tcp", "udp"] = Field("tcp", description="tcp, as fast as it goes; or udp")
    duration: Annotated[Duration, Also(("time", "seconds"))] = Field(
        10.0, ge=1, le=86400, description="seconds measured, whole, after those omitted"
    )
    omit: Duration = Field(
        0.0, ge=0, le=60, examples=["2s"], description="whole seconds at the start that are not counted, such as slow start"
    )
    streams: Annotated[int, Also(("parallel", "threads", "flows"))] = Field(
        1, ge=1, le=128, examples=[4], description="parallel streams of each client"
    )
    rate: Annotated[Rate | None, Also(("bandwidth", "bitrate", "speed"))] = Field(
        None,
        gt=0,
        examples=["100mbit"],
        description="bits per second offered by each stream, without headers; null: as fast as it goes",
    )
    payload: Annotated[Size | None, Also(("size", "length", "datagram"))] = Field(
        None, ge=1, le=2**20, examples=["1400B"], description="bytes of a datagram, or of each write to TCP; null: iperf3's own"
    )
    mss: int | None = Field(
        None, ge=88, le=9216, examples=[1400], description="TCP's maximum segment size, bytes; null: as the MTU has it"
    )
    congestion: Annotated[str | None, Also(("congestion_control", "cc"))] = Field(
        None,
        pattern="^[a-z_0-9]+$",
        examples=["cubic"],
        description="TCP's congestion control of iperf3's sockets, at both ends, held against what each reports; also where "
        "containers may not be given it by testbed.congestion_control, such as cubic; null: the hosts' own",
    )
    nagle: Literal["on", "off"] | None = Field(
        None,
        description="off: small writes are sent at once (TCP_NODELAY), not held back while anything is unacknowledged; null: "
        "iperf3's own, which is on",
    )
    socket_buffer: Size | None = Field(
        None, ge=2048, le=2**30, examples=["256KiB"], description="of each socket, at both ends; null: the kernel's own"
    )

    @model_validator(mode="after")
    def _possible(self) -> Iperf3Params:
        for name in ("duration", "omit"):
            if getattr(self, name) != int(getattr(self, name)):
                raise ValueError(f"{name} must be whole seconds, as iperf3's intervals are; it is {getattr(self, name):g} s")
        if self.protocol == "udp":
            if self.mss is not None:
                raise ValueError("mss is TCP's; a datagram's size is payload")
            if self.congestion is not None:
                raise ValueError("congestion is TCP's; UDP goes at the rate offered")
            if self.nagle is not None:
                raise ValueError("nagle is TCP's; UDP sends each datagram at once")
            if self.payload is not None and not LEAST_DATAGRAM_BYTES <= self.payload <= LARGEST_DATAGRAM_BYTES:
                raise ValueError(
                    f"a datagram's payload is {LEAST_DATAGRAM_BYTES} (iperf3's header) to {LARGEST_DATAGRAM_BYTES} bytes,"
                    f" not {self.payload}"
                )
        return self

    def estimate_seconds(self) -> float:
        return self.omit + self.duration + BEGIN_AND_END_S
