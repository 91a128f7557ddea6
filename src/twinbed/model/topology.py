"""The network between hosts: which hosts there are, the switch, and what each link carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from twinbed.model.units import Rate, Size


class Link(BaseModel):
    """A host's link to the switch. Its rate is enforced in both directions, at the switch's end of the two links."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: Rate | None = Field(None, description="bits per second each way, such as 1gbit; null leaves the link unshaped")
    shaper: Literal["htb", "tbf"] = Field("htb", description="queueing discipline that enforces the rate")
    burst: Size | None = Field(None, description="bytes that may pass at once; null: 1 ms at the rate, at least 64 KiB")
    mtu: int = Field(1500, ge=576, le=9000, description="largest IP packet, bytes")

    @property
    def burst_bytes(self) -> int | None:
        """The burst in force: a 64 KiB segmentation-offload packet must fit, or TBF would drop it."""
        if self.rate is None:
            return None
        return self.burst if self.burst is not None else max(self.rate // 8 // 1000, 65536 + 1024)


class Topology(BaseModel):
    """``pairs`` isolated client/server pairs, all on one switch."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pairs"] = Field("pairs", description="pairs: clients and servers, one to one")
    pairs: int = Field(1, ge=1, le=80, description="number of client/server pairs")
    switch: Literal["bridge"] = Field("bridge", description="what joins the links: bridge, the Linux bridge")
    link: Link = Field(Link(), description="every host's link to the switch")

    def names(self) -> Sequence[tuple[str, str]]:
        """(client, server) of each pair; without a number where there is only one."""
        if self.pairs == 1:
            return (("client", "server"),)
        return tuple((f"client{i}", f"server{i}") for i in range(1, self.pairs + 1))
