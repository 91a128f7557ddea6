"""What is compared with what: runs as they are, runs within blocks of the design, or sessions.

Runs of one session (a day, a boot of the machine, one source of results, a machine of a fleet) share what does not change
while it lasts. They are not independent, so that the session is the unit: its value on a testbed is the mean of its runs
there, of logarithms where all values are positive. Where every unit has both testbeds, the units are pairs; where each testbed
has units of its own, their means are two independent samples. This is the mixed model with a random effect of the session,
exact where sessions have as many runs each (Murray 1998, Design and Analysis of Group-Randomized Trials, ch. 6), and needs no
estimate of its variance.

A block of the design has one run of each cell: a pair without any mean to take.  Where a value is missing on one side of any
block, both testbeds are taken as independent samples, which errs towards no verdict.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median

from twinbed.model.error import TwinbedError
from twinbed.model.record import Record
from twinbed.model.result import Pairing
from twinbed.model.run import level_text
from twinbed.model.tables import Tables
from twinbed.observations.samples import CellRuns, Key

MACHINE = "machine"
"""The name of the sessions that are the machines of a fleet."""
FEWEST_MACHINES = 3
"""Two leave one degree of freedom to say how machines differ: blocks are the pairs then, and verdicts hold for those two."""
TIME = "time"
"""The name of the sessions that starting times show."""
PAUSE = 10.0
"""Times the median time from start to start: a longer one begins a session."""
SHORTEST_PAUSE_S = 60.0

Values = Sequence[float]


@dataclass(frozen=True, slots=True)
class Arranged:
    """Two samples as the comparison of means takes them."""

    one: Values
    two: Values
    paired: bool = False
    sessions: tuple[int, int] | None = None
    """How many sessions the samples are the means of; None where they are of runs."""
    units: tuple[int | str, ...] = ()
    """The blocks or sessions of pairs, in their order."""


@dataclass(frozen=True, slots=True)
class Units:
    """``of_run`` maps a run to its block or session; empty where runs are independent."""

    of_run: Mapping[str, int | str] = field(default_factory=dict)
    sessions: bool = False

    def arrange(self, key: Key, groups: tuple[CellRuns, CellRuns]) -> Arranged:
        values = [group.values.get(key, ()) for group in groups]
        units = [self._units(key, group) for group in groups]
        if self.sessions:
            positive = all(value > 0 for each in values for value in each)
            means = [{unit: _mean(of_unit, positive) for unit, of_unit in each.items()} for each in units]
            counts = len(means[0]), len(means[1])
            one, two = _ordered(means)
            paired = means[0].keys() == means[1].keys()
            return Arranged(one, two, paired, counts, tuple(sorted(means[0], key=str)) if paired else ())
        alone = all(len(of_unit) == 1 for each in units for of_unit in each.values())
        if self.of_run and alone and units[0].keys() == units[1].keys():
            one, two = _ordered([{unit: of_unit[0] for unit, of_unit in each.items()} for each in units])
            return Arranged(one, two, paired=True, units=tuple(sorted(units[0], key=str)))
        return Arranged(values[0], values[1])

    def means(self, key: Key, group: CellRuns) -> Values:
        """The values of one testbed that are independent of each other: of its sessions, or of its runs."""
        values = group.values.get(key, ())
        positive = all(value > 0 for value in values)
        return [_mean(each, positive) for each in self._units(key, group).values()] if self.sessions else values

    def _units(self, key: Key, group: CellRuns) -> dict[int | str, list[float]]:
        of_unit: dict[int | str, list[float]] = defaultdict(list)
        if self.of_run:
            for run, value in zip(group.runs.get(key, ()), group.values.get(key, ()), strict=True):
                of_unit[self.of_run[run]].append(value)
        return of_unit


def _ordered(units: Sequence[Mapping[int | str, float]]) -> tuple[Values, Values]:
    one, two = ([each[unit] for unit in sorted(each, key=str)] for each in units)
    return one, two


def _mean(values: Values, positive: bool) -> float:
    if len(values) == 1:
        return values[0]
    return math.exp(fmean(math.log(value) for value in values)) if positive else fmean(values)


def units(tables: Tables, sessions: str | None) -> Units:
    """By the factor ``sessions`` if it is given, else by the machines of a fleet, else by blocks where the study says so."""
    machines = {record.id: record.machine for record in tables.records if record.machine}
    many = len(set(machines.values()))
    if machines.keys() == {record.id for record in tables.records} and (
        sessions == MACHINE or (sessions is None and many >= FEWEST_MACHINES)
    ):
        return Units(machines, sessions=True)
    if sessions == TIME:
        return Units(by_time(tables.records), sessions=True)
    if sessions is not None:
        factors = {name: None for record in tables.records for name in record.levels if name != "testbed"}
        if sessions not in factors:
            raise TwinbedError(
                f"no run has a factor {sessions!r} that says its session",
                advice=f"there are: {', '.join(factors) or 'none'}; {TIME} takes pauses between runs",
            )
        return Units({record.id: level_text(record.levels.get(sessions, "")) for record in tables.records}, sessions=True)
    if tables.outline.data.get("comparison") == Pairing.PAIRED or many > 1:
        return Units({record.id: record.block for record in tables.records})
    return Units()


def by_time(records: Sequence[Record]) -> dict[str, int]:
    """Run -> the session that it was made in, from 0: a pause that is PAUSE times the usual time between runs begins one."""
    ordered = sorted(records, key=lambda record: (record.started_s, record.position))
    steps = [after.started_s - before.started_s for before, after in pairwise(ordered)]
    pause = max(PAUSE * median(steps), SHORTEST_PAUSE_S) if steps else 0.0
    session, of_run = 0, {record.id: 0 for record in ordered[:1]}
    for record, step in zip(ordered[1:], steps, strict=True):
        session += step > pause
        of_run[record.id] = session
    return of_run
