"""What ``anatomy`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.patterns import Pattern
from twinbed.analyses.anatomy.steps import Seen
from twinbed.analyses.anatomy.waits import Timer
from twinbed.model.caution import Caution
from twinbed.model.result import Interval, Verdict
from twinbed.model.run import Level

TOTAL, BETWEEN = "total", "between"
"""Of a request all steps; and what lies between one and the next of the same client."""
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
    """Share -> seconds: the mean over runs of each run's own quantile. Nothing of what a run has once."""
    bound: float = 0.0
    """Seconds: the largest error that clocks of hosts make, in any run."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What requests consist of on one testbed and cell."""

    cell: Mapping[str, Level]
    testbed: str
    runs: int
    requests: int
    """With all their steps, of all runs."""
    times: tuple[StepTimes, ...]
    """In the order of the steps; the total and what lies between requests at the end."""
    patterns: tuple[Pattern, ...]
    """Of packets, most frequent first."""
    parts: tuple[StepTimes, ...] = ()
    """Of the steps on hosts, where every run has them: means over the requests whose step has all its parts."""
    groups: tuple[StepTimes, ...] = ()
    """The same by whose time it is: means over the requests whose steps all have their parts."""
    split: int = 0
    """Requests whose steps all have their parts."""
    timers: tuple[Timer, ...] = ()
    """That requests met."""

    @property
    def whole_s(self) -> float:
        """Seconds of all groups."""
        return sum(times.mean for times in self.groups)

    def of(self, step: str) -> StepTimes | None:
        return next((each for each in (*self.times, *self.parts) if each.step == step), None)


@dataclass(frozen=True, slots=True)
class Difference:
    """One step of one cell against the reference."""

    cell: Mapping[str, Level]
    testbed: str
    reference: str
    step: str
    seconds: float
    """How much longer it is on average. Those of the steps add up to that of the total."""
    interval: Interval | None
    """Of ``seconds``, at the confidence; None where it takes more runs."""
    ratio: float | None
    ratio_interval: Interval | None
    """At 1 - 2 alpha."""
    p_equivalent: float | None
    p_different: float | None
    """After Holm's correction over all steps."""
    verdict: Verdict | None
    paired: bool


@dataclass(frozen=True, slots=True)
class Anatomy:
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
    """The request that stands for those of a cell and testbed, where captures hold its packets."""
    cautions: tuple[Caution, ...] = ()
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Step -> its parts, in the order of time."""
    part_titles: Mapping[str, str] = field(default_factory=dict)
    part_differences: tuple[Difference, ...] = ()
    """Those of a step add up to that of the step, where every request has its parts."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of runs, or of requests, that are not in it."""

    @property
    def cells(self) -> list[Mapping[str, Level]]:
        """In the order of their first requests."""
        return [each.cell for at, each in enumerate(self.requests) if all(each.cell != one.cell for one in self.requests[:at])]

    @property
    def compared(self) -> list[tuple[Mapping[str, Level], str]]:
        """The cells and testbeds that have differences."""
        return [(each.cell, each.testbed) for each in self.differences if each.step == TOTAL]

    def of(self, cell: Mapping[str, Level]) -> list[Requests]:
        """Return those of one cell, in the order of the testbeds."""
        return [each for each in self.requests if each.cell == cell]

    def ladders_of(self, cell: Mapping[str, Level]) -> tuple[Ladder, ...]:
        """Return those of one cell, in the order of the testbeds."""
        return tuple(each for each in self.ladders if each.cell == cell)

    def parts_of(self, cell: Mapping[str, Level], testbed: str) -> dict[str, Difference]:
        """Return part -> its difference."""
        return {each.step: each for each in self.part_differences if each.cell == cell and each.testbed == testbed}

    def differences_of(self, cell: Mapping[str, Level], testbed: str) -> dict[str, Difference]:
        """Return step or part -> its difference."""
        own = {each.step: each for each in self.differences if each.cell == cell and each.testbed == testbed}
        return own | self.parts_of(cell, testbed)
