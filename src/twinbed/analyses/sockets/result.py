"""What ``sockets`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds one side's senders up in one cell on one testbed: means over its runs and hosts. None is not known."""

    cell: Mapping[str, Level]
    testbed: str
    side: str
    """``client`` or ``server``."""
    runs: int
    application: float | None
    """Of connections' time: with nothing to send."""
    rwnd: float | None
    sndbuf: float | None
    network: float | None
    """Of the time with something to send."""
    cwnd: float | None
    """Segments."""
    srtt_s: float | None
    seen: float | None
    """Share of connections with a sample."""

    def parts(self) -> Mapping[str, float]:
        """Return the share of connections' time that each reason takes; of the time with something to send, where the rest is
        not known. Nothing where no reason is known."""
        if self.rwnd is None or self.sndbuf is None or self.network is None:
            return {}
        idle = {} if self.application is None else {"application": self.application}
        busy = 1 - (self.application or 0.0)
        return {**idle, "receive window": self.rwnd * busy, "send buffer": self.sndbuf * busy, "network": self.network * busy}


@dataclass(frozen=True, slots=True)
class Window:
    """The congestion window over time of the connection of a run that had the most bytes acknowledged."""

    cell: Mapping[str, Level]
    testbed: str
    run: str
    host: str
    median: bool
    """Whether it is the run of its cell and testbed whose mean is in the middle."""
    seconds: tuple[float, ...]
    """Since its first sample."""
    cwnd: tuple[float, ...]
    """Segments."""


@dataclass(frozen=True, slots=True)
class Senders:
    limits: tuple[Limits, ...]
    windows: tuple[Window, ...]
    reference: str | None
    """The testbed that the others are held against."""
    testbeds: tuple[str, ...] = ()
    """In the order of the study."""
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs that are not in it."""
