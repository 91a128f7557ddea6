"""What ``monitor`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.model.caution import Caution
from twinbed.model.run import Level


@dataclass(frozen=True, slots=True)
class Seen:
    """What the runs of one cell and testbed have of one kind: a class of connections, or a signature of alerts."""

    cell: Mapping[str, Level]
    testbed: str
    observer: str
    checksums: str
    what: str
    events: tuple[int, ...]
    """Of each run."""
    seconds: float | None
    """Of all captures; None where one has no length."""
    low: float | None
    """A second, with ``high`` the 95 % interval by Poisson's law."""
    high: float | None
    same: bool | None
    """Whether every run has as many as every run of the reference; None of the reference itself, or without one."""
    verdict: str | None
    """On the ratio of rates to the reference's, by Poisson's law: equivalent, different, inconclusive; None without any."""

    @property
    def rate(self) -> float | None:
        """The events a second."""
        return sum(self.events) / self.seconds if self.seconds else None


@dataclass(frozen=True, slots=True)
class Monitored:
    classes: tuple[Seen, ...]
    alerts: tuple[Seen, ...]
    reference: str | None
    cautions: tuple[Caution, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs that are not in it."""

    def differing(self) -> tuple[Seen, ...]:
        """Return the alerts that a testbed does not give as the reference does."""
        return tuple(each for each in self.alerts if each.same is False)
