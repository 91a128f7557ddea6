"""What work costs the CPUs of a model's hosts, and what a packet takes without any load."""

from __future__ import annotations

from dataclasses import dataclass

from twinbed.testbeds.model.tcp import Handling


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a CPU."""

    client_connection_s: float
    client_request_s: float
    server_connection_s: float
    server_request_s: float
    sending: Handling
    receiving: Handling
    latency_s: float
    """One way, of a packet."""
    wake_s: float
    """Of a CPU with nothing to do."""
