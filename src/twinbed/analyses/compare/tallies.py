"""The events that a metric counts, or that it is the rate of, with what they could happen in."""

from __future__ import annotations

import math

from twinbed.observations.samples import CellRuns, Key, Samples
from twinbed.statistics.counts import Tally

PER = "_per_"


def tallies(samples: Samples, key: Key, groups: tuple[CellRuns, CellRuns]) -> tuple[Tally, Tally] | None:
    """Of both testbeds: counts are of runs, and what is divided by the work done (``failed_requests_per_request``) has that for
    exposure. None where the metric counts no events, or where events or work of some run are not known."""
    if samples.metrics[key[0]].events:
        one, two = (Tally(group.values.get(key, ()), len(group.values.get(key, ()))) for group in groups)
        return (one, two) if one.exposure and two.exposure else None
    of, _, unit = key[0].rpartition(PER)
    if not of or of not in samples.metrics or not samples.metrics[of].events:
        return None
    of_testbeds = [_of_work(group, key, (of, *key[1:]), (f"{unit}s", "", "")) for group in groups]
    return (of_testbeds[0], of_testbeds[1]) if of_testbeds[0] and of_testbeds[1] else None


def _of_work(group: CellRuns, key: Key, events: Key, work: Key) -> Tally | None:
    counts, done = (dict(zip(group.runs.get(each, ()), group.values.get(each, ()), strict=True)) for each in (events, work))
    runs = group.runs.get(key, ())
    if not runs or any(run not in counts or not done.get(run) for run in runs):
        return None
    return Tally([counts[run] for run in runs], math.fsum(done[run] for run in runs))
