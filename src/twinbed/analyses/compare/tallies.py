"""The events that a metric counts, or that it is the rate of, with what they could happen in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from twinbed.observations.samples import CellRuns, Key, Samples
from twinbed.statistics.counts import Tally

PER = "_per_"


def tallies(samples: Samples, key: Key, groups: tuple[CellRuns, CellRuns]) -> tuple[Tally, Tally] | None:
    """Return the events of both testbeds with their exposure: runs, or the work done if the metric is divided by it
    (``failed_requests_per_request``). None where it counts no events, or events or work of some run are not known."""
    if samples.metrics[key[0]].events:
        own, reference = (Tally(group.values.get(key, ()), len(group.values.get(key, ()))) for group in groups)
        return (own, reference) if own.exposure and reference.exposure else None
    of, _, unit = key[0].rpartition(PER)
    if not of or of not in samples.metrics or not samples.metrics[of].events:
        return None
    of_testbeds = [_of_work(group, key, (of, *key[1:]), (f"{unit}s", "", "")) for group in groups]
    return (of_testbeds[0], of_testbeds[1]) if of_testbeds[0] and of_testbeds[1] else None


def _of_work(group: CellRuns, key: Key, events: Key, work: Key) -> Tally | None:
    runs = group.runs.get(key, ())
    counts, done = _of_runs(group, events, runs), _of_runs(group, work, runs)
    if not runs or counts is None or done is None or not all(done):
        return None
    return Tally(counts, math.fsum(done))


def _of_runs(group: CellRuns, key: Key, runs: Sequence[str]) -> Sequence[float] | None:
    """Return the values of these runs; None where one has none."""
    values, own = group.values.get(key, ()), group.runs.get(key, ())
    if own == runs:
        return values
    of_run = dict(zip(own, values, strict=True))
    return [of_run[run] for run in runs] if all(run in of_run for run in runs) else None
