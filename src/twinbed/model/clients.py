"""Start and end of a run's clients, and how long all of them ran together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.model.json import Document, dataclass_of

START_SKEW_LIMIT_S = 0.05
"""Clients may start this far apart without a caution."""


@dataclass(frozen=True, slots=True)
class ClientTimes:
    """One client program's life on this machine's clock, in seconds from the first client's start."""

    host: str
    start_s: float
    end_s: float

    def to_json(self) -> Document:
        return {"host": self.host, "start_s": round(self.start_s, 6), "end_s": round(self.end_s, 6)}

    @classmethod
    def from_json(cls, data: Document) -> ClientTimes:
        """Read the times. Raises KeyError, TypeError or ValueError for other data."""
        return dataclass_of(cls, data)


def skew_s(clients: Sequence[ClientTimes]) -> float:
    """Return the seconds between the first and the last client's start; 0 for fewer than two."""
    starts = [client.start_s for client in clients]
    return max(starts, default=0.0) - min(starts, default=0.0)


def overlap_share(clients: Sequence[ClientTimes]) -> float | None:
    """Return the share of the clients' time in which all of them ran; None for fewer than two, or if none took any time."""
    whole = sum(client.end_s - client.start_s for client in clients)
    if len(clients) < 2 or whole <= 0:
        return None
    together = min(client.end_s for client in clients) - max(client.start_s for client in clients)
    return max(0.0, len(clients) * together / whole)
