"""How many times as much a testbed varies as the reference, and Holm's correction of those tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from twinbed.model.comparison import Spread
from twinbed.model.result import Interval
from twinbed.statistics.moments import logarithms, variance, varies
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.sample import Sample
from twinbed.statistics.spread import (
    LEAST,
    brown_forsythe,
    brown_forsythe_at_values,
    deviation_ratio_interval,
    equal_deviations,
)

Values = Sequence[float]


def spread(one: Values, two: Values, confidence: float, *, relative: bool = True) -> Spread:
    """Return the spreads of two samples of at least two values. Relative is by logarithms, where all values are positive."""
    samples = [Sample.of(values) for values in (one, two)]
    relative = relative and min(each.least for each in samples) > 0
    x, y = (logarithms(each) if relative else each for each in samples)
    one, two = samples
    return Spread(
        relative=relative,
        ratio=_deviation_ratio(x, y),
        interval=_interval(x, y, confidence),
        deviation_ratio=_deviation_ratio(one, two),
        deviation_interval=_interval(one, two, confidence),
        variation_ratio=_variation_ratio(one, two),
        p_value=equal_deviations(x, y),
        p_brown_forsythe=brown_forsythe(x, y),
        p_at_values=brown_forsythe_at_values(x, y),
        reason=_reason(x, y),
    )


def _deviation_ratio(one: Values, two: Values) -> float | None:
    if not varies(two):
        return None
    return math.sqrt(variance(one)) / math.sqrt(variance(two)) if varies(one) else 0.0


def _variation_ratio(one: Values, two: Values) -> float | None:
    samples = Sample.of(one), Sample.of(two)
    deviations, least, means = (
        _deviation_ratio(one, two),
        min(each.least for each in samples),
        [each.average for each in samples],
    )
    return deviations * means[1] / means[0] if deviations is not None and least >= 0 and all(means) else None


def _interval(one: Values, two: Values, confidence: float) -> Interval | None:
    bounds = deviation_ratio_interval(one, two, confidence)
    return None if bounds is None else Interval(*bounds)


def _reason(one: Values, two: Values) -> str:
    if not varies(two):
        return "the reference varies not at all" if varies(one) else "neither varies"
    if not varies(one):
        return "this varies not at all"
    return f"a test and an interval need {LEAST} values a testbed" if min(len(one), len(two)) < LEAST else ""


def decided(spreads: Sequence[Spread | None], alpha: float) -> list[Spread | None]:
    """Return the spreads of one family, each kind of test with Holm's correction of its own. Spreads differ where Bonett's
    rejects, and so does Brown and Forsythe's about values: the first does for a spread that one slow run makes, or a few, the
    second does not."""
    of_ratio = holm([spread.p_value if spread else None for spread in spreads])
    of_levene = holm([spread.p_brown_forsythe if spread else None for spread in spreads])
    of_values = holm([spread.p_at_values if spread else None for spread in spreads])
    family = max(1, sum(p_value is not None for p_value in of_ratio))
    return [
        spread
        and replace(
            spread,
            p_value=one,
            p_brown_forsythe=two,
            p_at_values=three,
            family=family,
            differs=one is not None and three is not None and max(one, three) <= alpha,
        )
        for spread, one, two, three in zip(spreads, of_ratio, of_levene, of_values, strict=True)
    ]
