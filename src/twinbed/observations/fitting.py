"""Find which N keep an objective, among runs that agree in all other factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinbed.metrics.metric import computable
from twinbed.model.error import TwinbedError
from twinbed.observations.numbered import Numbered, one_of
from twinbed.statistics.capacity import LEAST, Capacity, Objective, capacity, sentence

LEAST_RATE = 0.9
"""The share of the single pair's rate that a report requires."""
MOST_LOSS = 0.01
LEAST_FAIRNESS = 0.95
"""Jain's index; a report requires it if no single pair was run to compare rates with."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """The N that keep one objective."""

    capacity: Capacity
    samples: Mapping[int, Sequence[float]]
    """The values of each N with enough runs."""
    statement: str


def fitting(group: Numbered, over: str, objective: Objective, confidence: float, unit: str) -> Fitting:
    """Return which N keep the objective. ``unit`` is the values' unit, for the statement.

    Raises TwinbedError with the group that cannot be judged, and the reason.
    """
    where = f"{group.name}: " if group.name else ""
    largest = max(map(abs, group.values), default=0.0)
    if not computable(largest):
        raise TwinbedError(f"{where}values are of size {largest:.0e}", advice="use another unit")
    samples = group.enough(LEAST, 1 if objective.relative else None)
    try:
        found = capacity(samples, objective, confidence)
    except ValueError as error:
        raise TwinbedError(
            f"{where}{error}, with N the {over}",
            advice="use replicates: 5 or more, and N = 1 for a share of it; `twinbed run --retry-failed` repeats failed runs",
        ) from error
    one = one_of(over)
    return Fitting(found, samples, sentence(found, one, f"{one}s", unit.removeprefix("1")))
