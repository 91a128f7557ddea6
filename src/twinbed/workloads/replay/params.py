"""The settings of the workload ``replay``."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from pydantic import Field, model_validator

from twinbed.contracts.params import Unfit, WorkloadParams
from twinbed.model import named_file
from twinbed.model.topology import Topology
from twinbed.model.units import Duration
from twinbed.readers.replay import pcap, sample

BEGIN_AND_END_S = 2.0
LARGEST_BYTES = 64 * 2**20
"""Of a capture: it is held in memory, and put on both hosts."""


class ReplayParams(WorkloadParams):
    """What is replayed, and how fast."""

    lab_only: ClassVar[bool] = True

    capture: str | None = Field(
        None,
        examples=["conversation.pcap"],
        description="pcap file of Ethernet, from the current folder; null: three built-in requests of HTTP, one with an attack",
    )
    capture_sha256: str | None = Field(
        None,
        pattern="^[0-9a-f]{64}$",
        examples=["0000000000000000000000000000000000000000000000000000000000000000"],
        description="of the capture, so that a run is of this content; null: that of the file as it is",
    )
    speed: float = Field(1.0, ge=0.01, le=100, description="how many times as fast as it was captured")
    max_packets: int = Field(100_000, ge=1, le=1_000_000, description="packets from its beginning that are replayed at most")
    duration: Duration = Field(
        60.0,
        gt=0,
        le=3600,
        description="of the capture's time, from its beginning, at most; at another speed it takes another time",
    )

    @model_validator(mode="after")
    def _there(self) -> ReplayParams:
        if self.capture is not None and self.capture_sha256 is None:
            object.__setattr__(self, "capture_sha256", hashlib.sha256(_read(self.capture)).hexdigest())
        return self

    def content(self) -> bytes:
        """The capture. Raises ValueError where the file is not there any more, or is another."""
        if self.capture is None:
            return sample.capture()
        content = _read(self.capture)
        if hashlib.sha256(content).hexdigest() != self.capture_sha256:
            raise ValueError(f"{self.capture} is not the file that it was: its SHA-256 should be {self.capture_sha256}")
        return content

    def unfit(self, topology: Topology) -> Unfit | None:
        if topology.routers:
            message = "cannot be replayed through routers: packets carry hardware addresses that no router has"
            return Unfit("kind", message, "a topology without routers")
        return None

    def estimate_seconds(self) -> float:
        try:
            times = [frame.time_ns for frame in _frames(self.content())]
        except ValueError:  # planning its run says so
            times = []
        span_s = (max(times) - min(times)) / 1e9 if times else self.duration
        return BEGIN_AND_END_S + min(span_s, self.duration) / self.speed


@lru_cache(maxsize=4)
def _frames(content: bytes) -> Sequence[pcap.Frame]:
    return pcap.read(content)


@lru_cache(maxsize=4)
def _read(file: str) -> bytes:
    """Return the file, if it is a capture: no other file of this machine is read, hashed or put on hosts."""
    content = named_file.content(file, LARGEST_BYTES)
    try:
        pcap.order(content)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    return content
