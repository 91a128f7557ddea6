"""The result of the analysis ``stalls``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Caution, Cautioned
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class KernelMessage:
    host: str
    after_s: float
    """From the stall's start; below 0 for one just before it."""
    text: str


@dataclass(frozen=True, slots=True)
class Stalled:
    """One stall of a connection, as one link saw it, or a client's and its server's."""

    run: str
    cell: Mapping[str, Level]
    testbed: str
    links: tuple[str, ...]
    client: str
    """Address and port of the end that opened the connection."""
    server: str
    start_ns: int
    since_s: float
    """The start of the stall, since the first packet of the link's connections."""
    duration_s: float
    waiting: str
    """client or server: the end whose data is unacknowledged."""
    unacknowledged_bytes: int
    retransmissions: int
    probes: int
    rto_s: float
    reason: str
    ended_by: str
    place: str | None
    """path, path_back, receiver or sender; None unless both links of the connection were captured."""
    requests: int | None
    """Requests under way on the link during the stall; None where single requests are not known."""
    messages: tuple[KernelMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class StallsFound(Cautioned):
    stalls: tuple[Stalled, ...] = ()
    """Ordered by start."""
    runs: int = 0
    """Complete runs whose connections or pace are known."""
    pauses: tuple[Caution, ...] = ()
    """The pauses of each client, also those that only its pace shows."""
