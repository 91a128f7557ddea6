"""Find how long each run's programs waited for idle CPUs to be woken.

The instrument ``counters`` times every wake-up of an idle CPU in the machine's kernel and in those of guests. Runs without such
times have the lab's estimate, if any: the number of wake-ups times what one took before the workload.

Limits: wake-ups of programs other than the workload's count too. Guests with several CPUs wake them through the machine, so
that both kernels may count the same wait.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from twinbed.contracts.place import MACHINE
from twinbed.model.record import Record
from twinbed.model.tables import Tables
from twinbed.model.wake_ups import WAITED_SHARE
from twinbed.observations.inside import matching, read

_COUNT, _SECONDS = "idle_wake_ups", "idle_wake_up_seconds"
_BY_WORK = re.compile(rf"{_COUNT}_per_(\w+)")


@dataclass(frozen=True, slots=True)
class Waits:
    """Wake-ups of idle CPUs for each unit of work, mean over runs."""

    work: str
    """Its unit, such as ``request``."""
    wake_ups: float
    each_s: float
    work_s: float
    """The time that a client took for it."""

    @property
    def waited_s(self) -> float:
        """The time in which a program waited for it."""
        return self.wake_ups * self.each_s


@dataclass(slots=True)
class _Run:
    """Sums over the kernels of a run."""

    wake_ups: float = 0.0
    seconds: float = 0.0
    by_work: dict[str, float] = field(default_factory=dict)


def shares(source: Tables, records: Sequence[Record]) -> dict[str, float]:
    """Return run -> the share of its clients' time in which programs waited for idle CPUs: as timed, else as the lab
    estimated it."""
    timed, found = _timed(source), _estimated(source)
    for record in records:
        lasted_s = _lasted_s(record)
        if record.id in timed and lasted_s:
            found[record.id] = min(1.0, timed[record.id].seconds / lasted_s)
    return found


def waits(source: Tables, records: Sequence[Record]) -> dict[str, Waits]:
    """Return run -> its wake-ups by the work done, of runs whose kernels timed any."""
    timed, found = _timed(source), {}
    for record in records:
        one, lasted_s = timed.get(record.id), _lasted_s(record)
        if one is None or one.wake_ups <= 0 or lasted_s <= 0 or len(one.by_work) != 1:
            continue
        ((work, by_work),) = one.by_work.items()
        if by_work <= 0:
            continue
        each_s = one.seconds / one.wake_ups
        found[record.id] = Waits(work, by_work, each_s, lasted_s * by_work / one.wake_ups)
    return found


def mean(of_runs: Sequence[Waits]) -> Waits | None:
    """Return the mean over runs of the wake-ups, of the time that they took, and of the time for the work."""
    if not of_runs:
        return None
    wake_ups, waited_s = fmean(one.wake_ups for one in of_runs), fmean(one.waited_s for one in of_runs)
    return Waits(of_runs[0].work, wake_ups, waited_s / wake_ups, fmean(one.work_s for one in of_runs))


def _timed(source: Tables) -> dict[str, _Run]:
    """Return run -> the wake-ups of its kernels; only of runs whose machine timed them."""
    found: dict[str, _Run] = defaultdict(_Run)
    machines = set()
    wanted = rf"^{_SECONDS}$|^{_COUNT}(_per_\w+)?$"
    for run, host, metric, value in matching(source, "metrics", "metric", wanted, "run", "host", "metric", "value"):
        one = found[run]
        if metric == _SECONDS:
            one.seconds += value
            machines |= {run} if host == MACHINE else set()
        elif metric == _COUNT:
            one.wake_ups += value
        elif by_work := _BY_WORK.fullmatch(metric):
            one.by_work[by_work[1]] = one.by_work.get(by_work[1], 0.0) + value
    return {run: one for run, one in found.items() if run in machines}


def _estimated(source: Tables) -> dict[str, float]:
    return {
        run: float(value)
        for run, place, fact, value in read(source, "facts", "run", "place", "fact", "value")
        if (place, fact) == (MACHINE, WAITED_SHARE) and value not in (None, "null")
    }


def _lasted_s(record: Record) -> float:
    return sum(client.end_s - client.start_s for client in record.clients)
