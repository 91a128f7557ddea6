"""Which N keep an objective, of the runs that agree in all other factors: for one objective, or for several in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.metrics.metric import computable
from twinbed.model.error import TwinbedError
from twinbed.observations.numbered import Numbered, one_of
from twinbed.statistics.capacity import LEAST, Capacity, Objective, capacity, sentence

LEAST_RATE = 0.9
"""The share of the single pair's rate that a report asks for."""
MOST_LOSS = 0.01
LEAST_FAIRNESS = 0.95
"""Jain's index; a report asks for it where no single pair was run to compare rates with."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """What is known of one objective."""

    capacity: Capacity
    samples: Mapping[int, Sequence[float]]
    """Those of each N that has enough runs."""
    statement: str


def fitting(group: Numbered, over: str, objective: Objective, confidence: float, unit: str) -> Fitting:
    """Return which N keep the objective. ``unit`` is that of the values, for the statement. Raises TwinbedError, which says of
    which group nothing can be said and why."""
    where = f"{group.name}: " if group.name else ""
    largest = max(map(abs, group.values), default=0.0)
    if not computable(largest):
        raise TwinbedError(f"{where}values are of the size {largest:.0e}", advice="take another unit")
    samples = group.enough(LEAST, 1 if objective.relative else None)
    try:
        found = capacity(samples, objective, confidence)
    except ValueError as error:
        raise TwinbedError(
            f"{where}{error}, with N the {over}",
            advice="replicates: 5 or more, and N = 1 for a share of it; `twinbed run --retry-failed` makes failed runs again",
        ) from error
    one = one_of(over)
    return Fitting(found, samples, sentence(found, one, f"{one}s", unit.removeprefix("1")))
