"""The result of ``sockets``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Limits:
    """The reasons for which one side's senders wait in one cell on one testbed: means over runs and hosts, None if unknown."""

    cell: Mapping[str, Level]
    testbed: str
    side: str
    """``client`` or ``server``."""
    runs: int
    application: float | None
    """The share of connections' time with nothing to send."""
    rwnd: float | None
    """A share of the time with something to send, as ``sndbuf`` and ``network``."""
    sndbuf: float | None
    network: float | None
    cwnd: float | None
    """Segments."""
    srtt_s: float | None
    seen: float | None
    """The share of connections with a sample."""

    def parts(self) -> Mapping[str, float]:
        """Return reason -> its share of connections' time, or of the time with something to send if the rest is unknown. Empty
        if no reason is known."""
        if self.rwnd is None or self.sndbuf is None or self.network is None:
            return {}
        idle = {} if self.application is None else {"application": self.application}
        busy = 1 - (self.application or 0.0)
        return {**idle, "receive window": self.rwnd * busy, "send buffer": self.sndbuf * busy, "network": self.network * busy}


@dataclass(frozen=True, slots=True)
class Window:
    """The congestion window over time, for the connection of a run with the most acknowledged bytes."""

    cell: Mapping[str, Level]
    testbed: str
    run: str
    host: str
    median: bool
    """True for the run with the median mean, in its cell and testbed."""
    seconds: tuple[float, ...]
    """Since the first sample."""
    cwnd: tuple[float, ...]
    """Segments."""


@dataclass(frozen=True, slots=True)
class Senders(Cautioned):
    limits: tuple[Limits, ...]
    windows: tuple[Window, ...]
    reference: str | None
    """The testbed that others are compared with."""
    testbeds: tuple[str, ...] = ()
    """Ordered as in the study."""
