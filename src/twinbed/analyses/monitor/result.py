"""The result of ``monitor``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.model.caution import Cautioned
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Seen:
    """The events of one kind (a class of connections, or a signature of alerts) in the runs of one cell and testbed."""

    cell: Mapping[str, Level]
    testbed: str
    observer: str
    checksums: str
    what: str
    events: tuple[int, ...]
    """The events of each run."""
    seconds: float | None
    """The length of all captures; None if one has no length."""
    low: float | None
    """With ``high``: the 95 % interval of the rate per second, by Poisson's law."""
    high: float | None
    same: bool | None
    """True if every run has as many as every run of the reference; None for the reference itself, or without one."""
    verdict: str | None
    """On the ratio of rates to the reference's, by Poisson's law: equivalent, different, inconclusive; None without events."""

    @property
    def rate(self) -> float | None:
        """Return the events per second."""
        return sum(self.events) / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class Monitored(Cautioned):
    classes: tuple[Seen, ...]
    alerts: tuple[Seen, ...]
    reference: str | None

    def differing(self) -> tuple[Seen, ...]:
        """Return the alerts whose number differs from the reference's."""
        return tuple(alert for alert in self.alerts if alert.same is False)
