"""The result of ``anatomy``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.patterns import Pattern
from twinbed.analyses.anatomy.steps import Seen
from twinbed.analyses.anatomy.waits import Timer
from twinbed.model.caution import Cautioned
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level

TOTAL, BETWEEN = "total", "between"
"""All steps of a request together; the time between one request and the next of the same client."""
SPECIAL = {TOTAL: "a request, from its first packet to its end", BETWEEN: "client: between one request and the next"}


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step on one testbed and cell."""

    step: str
    mean: float
    """Seconds: the mean over runs of the runs' means."""
    of_runs: tuple[float, ...]
    """The mean of each run, in the order of blocks."""
    quantiles: Mapping[float, float]
    """Share -> seconds: the mean over runs of each run's own quantile. Empty for what a run has once."""
    bound: float = 0.0
    """Seconds: the largest error that clocks of hosts make, in any run."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The steps of requests on one testbed and cell."""

    cell: Mapping[str, Level]
    testbed: str
    runs: int
    requests: int
    """Requests with all their steps, over all runs."""
    times: tuple[StepTimes, ...]
    """Ordered by step; the total and the time between requests at the end."""
    patterns: tuple[Pattern, ...]
    """Patterns of packets, most frequent first."""
    parts: tuple[StepTimes, ...] = ()
    """Parts of the steps on hosts, if every run has them: means over the requests whose step has all its parts."""
    groups: tuple[StepTimes, ...] = ()
    """The same by group (whose time it is): means over the requests whose steps all have their parts."""
    split: int = 0
    """Requests whose steps all have their parts."""
    timers: tuple[Timer, ...] = ()
    """Timers that requests met."""

    @property
    def whole_s(self) -> float:
        """Return the seconds of all groups."""
        return sum(times.mean for times in self.groups)

    def of(self, step: str) -> StepTimes | None:
        return next((times for times in (*self.times, *self.parts) if times.step == step), None)


@dataclass(frozen=True, slots=True)
class Difference:
    """One step of one cell, compared with the reference."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    step: str
    seconds: float
    """How much longer the step is on average. The steps' values add up to the total's."""
    interval: Interval | None
    """The interval of ``seconds`` at the confidence; None with too few runs."""
    ratio: float | None
    ratio_interval: Interval | None
    """The interval of the ratio at 1 - 2 alpha."""
    p_equivalent: float | None
    p_different: float | None
    """After Holm's correction over all steps."""
    verdict: Verdict | None
    paired: bool


@dataclass(frozen=True, slots=True)
class Anatomy(Cautioned):
    seen: Seen
    titles: Mapping[str, str]
    """Step -> what it is, in the order of a request."""
    where: Mapping[str, str]
    """Step -> client, path or server; part -> whose time it is."""
    reference: str | None
    margin: float
    confidence: float
    requests: tuple[Requests, ...]
    differences: tuple[Difference, ...]
    ladders: tuple[Ladder, ...] = ()
    """A typical request of each cell and testbed, if captures hold its packets."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Step -> its parts, in the order of time."""
    part_titles: Mapping[str, str] = field(default_factory=dict)
    part_differences: tuple[Difference, ...] = ()
    """The parts of a step add up to the step if every request has its parts."""

    @property
    def cells(self) -> list[Mapping[str, Level]]:
        """Return the cells in the order of their first requests."""
        return [
            group.cell
            for at, group in enumerate(self.requests)
            if all(group.cell != before.cell for before in self.requests[:at])
        ]

    @property
    def compared(self) -> list[tuple[Mapping[str, Level], str]]:
        """Return the cells and testbeds that have differences."""
        return [(difference.cell, difference.testbed) for difference in self.differences if difference.step == TOTAL]

    def of(self, cell: Mapping[str, Level]) -> list[Requests]:
        """Return those of one cell, in the order of the testbeds."""
        return [group for group in self.requests if group.cell == cell]

    def ladders_of(self, cell: Mapping[str, Level]) -> tuple[Ladder, ...]:
        """Return those of one cell, in the order of the testbeds."""
        return tuple(ladder for ladder in self.ladders if ladder.cell == cell)

    def parts_of(self, cell: Mapping[str, Level], testbed: str) -> dict[str, Difference]:
        """Return part -> its difference."""
        return {
            difference.step: difference
            for difference in self.part_differences
            if difference.cell == cell and difference.testbed == testbed
        }

    def differences_of(self, cell: Mapping[str, Level], testbed: str) -> dict[str, Difference]:
        """Return step or part -> its difference."""
        own = {
            difference.step: difference
            for difference in self.differences
            if difference.cell == cell and difference.testbed == testbed
        }
        return own | self.parts_of(cell, testbed)
