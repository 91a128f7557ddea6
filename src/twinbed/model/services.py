"""What a workload asks of servers, as a network has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """Where servers are asked."""

    protocol: str
    """tcp, udp or icmp, as a connection log has it."""
    port: int | None
    """None: any."""
