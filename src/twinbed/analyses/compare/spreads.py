"""How many times as much a testbed varies as the reference, and Holm's correction of those tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from twinbed.model.result import Comparison, Interval, Spread
from twinbed.statistics.moments import variance, varies
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.spread import LEAST, LEAST_TEST, brown_forsythe, deviation_ratio_interval

Values = Sequence[float]


def spread(one: Values, two: Values, confidence: float, *, relative: bool = True) -> Spread:
    """Of two samples of at least two values. Relative is by logarithms, where all values are positive."""
    relative = relative and min(*one, *two) > 0
    x, y = ([math.log(value) for value in values] if relative else list(values) for values in (one, two))
    return Spread(
        relative=relative,
        ratio=_deviation_ratio(x, y),
        interval=_interval(x, y, confidence),
        deviation_ratio=_deviation_ratio(one, two),
        deviation_interval=_interval(one, two, confidence),
        variation_ratio=_variation_ratio(one, two),
        p_value=brown_forsythe(x, y),
        reason=_reason(x, y),
    )


def _deviation_ratio(one: Values, two: Values) -> float | None:
    if not varies(two):
        return None
    return math.sqrt(variance(one) / variance(two)) if varies(one) else 0.0


def _variation_ratio(one: Values, two: Values) -> float | None:
    found, means = _deviation_ratio(one, two), (fmean(one), fmean(two))
    return found * means[1] / means[0] if found is not None and min(*one, *two) >= 0 and all(means) else None


def _interval(one: Values, two: Values, confidence: float) -> Interval | None:
    found = deviation_ratio_interval(one, two, confidence)
    return None if found is None else Interval(*found)


def _reason(one: Values, two: Values) -> str:
    if not varies(two):
        return "the reference varies not at all" if varies(one) else "neither varies"
    if not varies(one):
        return "this varies not at all"
    fewest = min(len(one), len(two))
    if fewest < LEAST_TEST:
        return f"a test needs {LEAST_TEST} values a testbed, an interval {LEAST}"
    return f"an interval needs {LEAST} values a testbed" if fewest < LEAST else ""


def decided(comparisons: Iterable[Comparison], alpha: float) -> list[Comparison]:
    """One family of tests, with Holm's correction."""
    members = list(comparisons)
    p_values = [each.spread.p_value for each in members if each.spread and each.spread.p_value is not None]
    adjusted = iter(holm(p_values))
    found = []
    for each in members:
        if each.spread is None or each.spread.p_value is None:
            found.append(each)
            continue
        p_value = next(adjusted)
        corrected = replace(each.spread, p_value=p_value, family=len(p_values), differs=p_value <= alpha)
        found.append(replace(each, spread=corrected))
    return found
