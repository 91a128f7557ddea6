"""Replicates needed for a verdict: from a pilot's headline comparisons, for each of them and for the study.

A comparison whose ratio is inside the margin in the pilot is planned to be shown equivalent, one outside it to be shown
different.  If the pilot cannot tell which, this is a guess, and ``if_equal`` gives the number for a true ratio of 1. Numbers
are for each testbed of each cell.  Differences are planned at alpha over the size of the family, the first and hardest step of
Holm's correction.  Power is that of each comparison on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING

from twinbed.model.caution import NO_VERDICT
from twinbed.model.result import Verdict
from twinbed.statistics.power import power_different, power_equivalent, replicates, upper_deviation

if TYPE_CHECKING:
    from twinbed.model.comparison import Comparison

POWERS = (0.80, 0.90)
UPPER = 0.80
"""Confidence of the upper limit of the pilot's standard deviation."""
MOST = 1000
"""More replicates are not proposed: the ratio is then too near the edge of the margin."""

Numbers = tuple[int | None, ...]
"""The number for each of POWERS; None if MOST would not do, or nothing can be planned."""
_NONE: Numbers = (None,) * len(POWERS)


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels at which one test for equivalence and one for a difference are made."""

    equivalent: float
    different: float


@dataclass(frozen=True, slots=True)
class Need:
    """The replicates that one comparison needs."""

    pilot: Comparison
    ratio: float | None = None
    """The pilot's ratio of geometric means."""
    deviations: tuple[float, float] | None = None
    """Standard deviations of the logarithms of the testbed's values and the reference's. If the pilot's comparison is paired,
    numbers follow from the deviation of the differences."""
    verdict: Verdict | None = None
    """The verdict to be shown."""
    as_found: Numbers = _NONE
    as_found_upper: Numbers = _NONE
    """The same with the upper limits of the standard deviations."""
    if_equal: Numbers = _NONE
    if_equal_upper: Numbers = _NONE
    reason: str = ""
    """Why there are no numbers."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The basis of a plan: logarithms of the pilot's ratio and of the margin, and standard deviations."""

    difference: float
    edge: float
    deviations: tuple[float, float]
    scatter: tuple[float, float]
    """Standard deviations of the tested values. Pairs are one sample of differences, which equals two samples of which one does
    not vary."""
    levels: Levels

    @property
    def inside(self) -> bool:
        return abs(self.difference) <= self.edge

    def equivalent(self, truth: float, scatter: tuple[float, float]) -> Numbers:
        return _numbers(lambda n: power_equivalent(truth, scatter, (n, n), self.edge, self.levels.equivalent))

    def as_found(self, scatter: tuple[float, float]) -> Numbers:
        if self.inside:
            return self.equivalent(self.difference, scatter)
        return _numbers(lambda n: power_different(self.difference, scatter, (n, n), self.edge, self.levels.different))


def needs(pilot: Iterable[Comparison], margin: float, levels: Levels) -> tuple[Need, ...]:
    """Return the need of every given comparison of the pilot."""
    return tuple(_need(comparison, margin, levels) for comparison in pilot)


def found_needs(pilot: Iterable[Comparison], margin: float, levels: Levels) -> tuple[Need, ...]:
    """Return the same with ``as_found`` alone, which takes a fourth of the time."""
    planned = ((comparison, _plan(comparison, margin, levels)) for comparison in pilot)
    return tuple(plan if isinstance(plan, Need) else _found(comparison, plan) for comparison, plan in planned)


def _plan(pilot: Comparison, margin: float, levels: Levels) -> _Plan | Need:
    """Return the plan, or a Need with the reason if nothing can be planned."""
    if doubts := [caution.kind for caution in pilot.cautions if caution.kind in NO_VERDICT]:
        return Need(pilot, reason=doubts[0].meaning)
    samples = (pilot.estimate.values, pilot.reference_estimate.values)
    if min(len(values) for values in samples) < 2:
        return Need(pilot, reason="fewer than two values, which have no spread")
    if pilot.scale != "ratio" or min(map(min, samples)) <= 0:
        return Need(pilot, reason="values without logarithms: 0, negative, or not on a ratio scale")
    logs = [[math.log(value) for value in values] for values in samples]
    own, reference = (_deviation(values) for values in logs)
    pairs = pilot.pair_deviation
    scatter = (own, reference) if pairs is None else (pairs, 0.0)
    return _Plan(fmean(logs[0]) - fmean(logs[1]), math.log1p(margin), (own, reference), scatter, levels)


def _found(pilot: Comparison, plan: _Plan) -> Need:
    return Need(
        pilot,
        ratio=math.exp(plan.difference),
        deviations=plan.deviations,
        verdict=Verdict.EQUIVALENT if plan.inside else Verdict.DIFFERENT,
        as_found=plan.as_found(plan.scatter),
    )


def _need(pilot: Comparison, margin: float, levels: Levels) -> Need:
    plan = _plan(pilot, margin, levels)
    if isinstance(plan, Need):
        return plan
    counts = len(pilot.estimate.values), len(pilot.reference_estimate.values)
    own, reference = (upper_deviation(deviation, n, UPPER) for deviation, n in zip(plan.scatter, counts, strict=True))
    return replace(
        _found(pilot, plan),
        as_found_upper=plan.as_found((own, reference)),
        if_equal=plan.equivalent(0.0, plan.scatter) if plan.inside else _NONE,
        if_equal_upper=plan.equivalent(0.0, (own, reference)) if plan.inside else _NONE,
    )


def _deviation(values: Sequence[float]) -> float:
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _numbers(power: Callable[[int], float]) -> Numbers:
    return tuple(replicates(power, target, MOST) for target in POWERS)


@dataclass(frozen=True, slots=True)
class Whole:
    """The replicates that the whole study needs in one case: the largest number, and the comparison that needs it."""

    case: str
    power: float
    replicates: int | None
    """None if MOST would not do for ``driver``."""
    driver: Need


def whole(needs: Sequence[Need]) -> tuple[Whole, ...]:
    """Return the need of the study for each case and each of POWERS; nothing if nothing could be planned."""
    planned = [need for need in needs if not need.reason]
    cases: tuple[tuple[str, Callable[[Need], Numbers]], ...] = (
        ("as in the pilot", lambda need: need.as_found),
        (f"as in the pilot, sd at its upper {UPPER:.0%} limit", lambda need: need.as_found_upper),
        ("ratios inside the margin are 1", lambda need: need.if_equal if _inside(need) else need.as_found),
        (
            f"ratios inside the margin are 1, sd at its upper {UPPER:.0%} limit",
            lambda need: need.if_equal_upper if _inside(need) else need.as_found_upper,
        ),
    )
    rows = []
    for case, of in cases if planned else ():
        for position, power in enumerate(POWERS):
            wanted = [of(need)[position] for need in planned]
            most = max(wanted, key=lambda n: math.inf if n is None else n)
            rows.append(Whole(case, power, most, planned[wanted.index(most)]))
    return tuple(rows)


def _inside(need: Need) -> bool:
    return need.verdict is Verdict.EQUIVALENT
