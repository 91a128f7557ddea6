"""The units of a comparison: single runs, runs within blocks of the design, or sessions.

Runs of one session (a day, a boot of the machine, one source of results, a machine of a fleet) share whatever does not change
while it lasts. They are not independent, so the session is the unit: its value on a testbed is the mean of its runs there, of
logarithms if all values are positive. If every unit has both testbeds, the units are pairs. If each testbed has units of its
own, their means are two independent samples. This is the mixed model with a random effect of the session. It is exact if all
sessions have the same number of runs (Murray 1998, Design and Analysis of Group-Randomized Trials, ch. 6), and needs no
estimate of its variance.

A block of the design has one run of each cell: a pair without any mean to take.  If a value is missing on one side of any
block, both testbeds are taken as independent samples, which errs towards no verdict.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import lt
from statistics import fmean

from twinbed.model.columns import Column, Records
from twinbed.model.error import TwinbedError
from twinbed.model.near import instead
from twinbed.model.record import Record
from twinbed.model.result import Pairing
from twinbed.model.run import level_text
from twinbed.model.tables import Tables
from twinbed.observations.samples import CellRuns, Key
from twinbed.statistics.sample import Sample

MACHINE = "machine"
"""The name of the sessions that are the machines of a fleet."""
FEWEST_MACHINES = 3
"""Two machines leave one degree of freedom for their differences: blocks are then the pairs, and verdicts hold for those
two."""
TIME = "time"
"""The name of sessions found by starting times."""
NONE = "none"
"""The value of --sessions for runs that do not depend on when they were made."""
PAUSE = 10.0
"""A session begins after a pause of so many times the median time from start to start."""
SHORTEST_PAUSE_S = 60.0

Values = Sequence[float]
_NO_RUNS: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Arranged:
    """Two samples as the comparison of means takes them."""

    own: Values
    reference: Values
    paired: bool = False
    sessions: tuple[int, int] | None = None
    """How many sessions the samples are the means of; None for samples of runs."""
    units: tuple[int | str, ...] = ()
    """The blocks or sessions of pairs, in their order."""


@dataclass(frozen=True, slots=True)
class _InOrder:
    """Runs by their units, each of which has one run."""

    units: tuple[int | str, ...]
    rows: Sequence[int] | None
    """Indices of the runs, in the order of units; None if runs are in that order."""
    values: dict[int, tuple[Values, Sample]] = field(default_factory=dict)
    """Values in the order of runs, by their identity, and in that of units."""

    def of(self, values: Sample) -> Sample:
        if self.rows is None:
            return values
        if id(values) not in self.values:
            self.values[id(values)] = values, Sample([values[row] for row in self.rows])
        return self.values[id(values)][1]


@dataclass(frozen=True, slots=True)
class Units:
    """``of_run`` maps a run to its block or session; empty where runs are independent."""

    of_run: Mapping[str, int | str] = field(default_factory=dict)
    sessions: bool = False
    _in_order: dict[int, tuple[Sequence[str], _InOrder | None]] = field(default_factory=dict, compare=False, repr=False)
    """Results by the identity of lists of runs: a reference is arranged with each testbed."""

    def arrange(self, key: Key, groups: tuple[CellRuns, CellRuns]) -> Arranged:
        if self.sessions:
            values = [group.values.get(key, Sample()) for group in groups]
            positive = all(not sample or sample.least > 0 for sample in values)
            units = [self._units(key, group) for group in groups]
            means = [{unit: _mean(of_unit, positive) for unit, of_unit in own.items()} for own in units]
            counts = len(means[0]), len(means[1])
            first, second = _ordered(means)
            paired = means[0].keys() == means[1].keys()
            return Arranged(first, second, paired, counts, tuple(sorted(means[0], key=str)) if paired else ())
        if self.of_run:
            own_runs, reference_runs = (self._alone(group.runs.get(key, _NO_RUNS)) for group in groups)
            if own_runs is not None and reference_runs is not None and own_runs.units == reference_runs.units:
                first, second = (
                    alone.of(group.values.get(key, Sample()))
                    for alone, group in zip((own_runs, reference_runs), groups, strict=True)
                )
                return Arranged(first, second, paired=True, units=own_runs.units)
        first, second = (group.values.get(key, ()) for group in groups)
        return Arranged(first, second)

    def means(self, key: Key, group: CellRuns) -> Values:
        """Return the values of one testbed that are independent of each other: of its sessions, or of its runs."""
        values = group.values.get(key, Sample())
        if not self.sessions:
            return values
        positive = not values or values.least > 0
        return [_mean(of_unit, positive) for of_unit in self._units(key, group).values()]

    def _units(self, key: Key, group: CellRuns) -> dict[int | str, list[float]]:
        of_unit: dict[int | str, list[float]] = defaultdict(list)
        for run, value in zip(group.runs.get(key, ()), group.values.get(key, ()), strict=True):
            of_unit[self.of_run[run]].append(value)
        return of_unit

    def _alone(self, runs: Sequence[str]) -> _InOrder | None:
        """Return runs in the order of units; None if a unit has several runs."""
        if id(runs) not in self._in_order:
            units, rows = [self.of_run[run] for run in runs], None
            # As a study lists replicates, they come in the order of its blocks.
            if not all(map(lt, units, islice(units, 1, None))):
                rows = sorted(range(len(units)), key=units.__getitem__)
                units = [units[row] for row in rows]
            alone = len(set(units)) == len(units)
            self._in_order[id(runs)] = runs, _InOrder(tuple(units), rows) if alone else None
        return self._in_order[id(runs)][1]


def _ordered(units: Sequence[Mapping[int | str, float]]) -> tuple[Values, Values]:
    first, second = ([of_unit[unit] for unit in sorted(of_unit, key=str)] for of_unit in units)
    return first, second


def _mean(values: Values, positive: bool) -> float:
    if len(values) == 1:
        return values[0]
    return math.exp(fmean(math.log(value) for value in values)) if positive else fmean(values)


def units(tables: Tables, sessions: str | None) -> Units:
    """Return the units: by the factor ``sessions`` if given, else by the machines of a fleet, else by blocks if the study says
    so."""
    records = Records.of(tables.records)
    machines = records.machines.coded().renamed(str)
    of_machines = set(machines.distinct()) - {""}
    whole, many = "" not in machines.distinct(), len(of_machines)
    if whole and (sessions == MACHINE or (sessions is None and many >= FEWEST_MACHINES)):
        return Units(_by_run(records, machines), sessions=True)
    if sessions == TIME:
        return Units(by_time(records), sessions=True)
    if sessions is not None:
        factors = {name: None for levels in records.levels.distinct() for name in levels if name != "testbed"}
        if sessions not in factors:
            raise TwinbedError(
                f"no run has a factor {sessions!r} for its session",
                advice=f"{instead(sessions, factors)}; {TIME} finds sessions by pauses between runs",
            )
        named = records.levels.coded().renamed(lambda levels: level_text(levels.get(sessions, "")))
        return Units(_by_run(records, named), sessions=True)
    if tables.outline.data.get("comparison") == Pairing.PAIRED or many > 1:
        return Units(dict(zip(records.ids, records.blocks.tolist(), strict=True)))
    return Units()


def _by_run(records: Records, column: Column[str]) -> dict[str, int | str]:
    return dict(zip(records.ids, column.listed(), strict=True))


def by_time(runs: Sequence[Record]) -> dict[str, int | str]:
    """Return run -> its session, from 0: a pause of PAUSE times the usual time between runs begins a session."""
    import numpy as np

    records = Records.of(runs)
    order = np.lexsort((records.positions, records.started_s))
    steps = np.diff(records.started_s[order])
    pause = max(PAUSE * float(np.median(steps)), SHORTEST_PAUSE_S) if len(steps) else 0.0
    session = np.concatenate([[0], np.cumsum(steps > pause)]).tolist() if len(order) else []
    ids = records.ids
    return {ids[row]: of for row, of in zip(order.tolist(), session, strict=True)}
