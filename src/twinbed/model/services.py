"""The services that a workload uses on servers, as seen in a network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """The address of a service."""

    protocol: str
    """tcp, udp or icmp, as in a connection log."""
    port: int | None
    """None: any port."""
    turns: bool = False
    """Requests and answers of a TCP connection take turns: captures show where each begins and ends, whatever the protocol."""
