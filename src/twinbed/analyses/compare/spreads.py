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


def spread(own: Values, reference: Values, confidence: float, *, relative: bool = True) -> Spread:
    """Return the spreads of two samples of at least two values. Relative is by logarithms, where all values are positive."""
    samples = [Sample.of(values) for values in (own, reference)]
    relative = relative and min(sample.least for sample in samples) > 0
    x, y = (logarithms(sample) if relative else sample for sample in samples)
    own, reference = samples
    return Spread(
        relative=relative,
        ratio=_deviation_ratio(x, y),
        interval=_interval(x, y, confidence),
        deviation_ratio=_deviation_ratio(own, reference),
        deviation_interval=_interval(own, reference, confidence),
        variation_ratio=_variation_ratio(own, reference),
        p_value=equal_deviations(x, y),
        p_brown_forsythe=brown_forsythe(x, y),
        p_at_values=brown_forsythe_at_values(x, y),
        reason=_reason(x, y),
    )


def _deviation_ratio(own: Values, reference: Values) -> float | None:
    if not varies(reference):
        return None
    return math.sqrt(variance(own)) / math.sqrt(variance(reference)) if varies(own) else 0.0


def _variation_ratio(own: Values, reference: Values) -> float | None:
    samples = Sample.of(own), Sample.of(reference)
    deviations, least, means = (
        _deviation_ratio(own, reference),
        min(sample.least for sample in samples),
        [sample.average for sample in samples],
    )
    return deviations * means[1] / means[0] if deviations is not None and least >= 0 and all(means) else None


def _interval(own: Values, reference: Values, confidence: float) -> Interval | None:
    bounds = deviation_ratio_interval(own, reference, confidence)
    return None if bounds is None else Interval(*bounds)


def _reason(own: Values, reference: Values) -> str:
    if not varies(reference):
        return "the reference varies not at all" if varies(own) else "neither varies"
    if not varies(own):
        return "this varies not at all"
    return f"a test and an interval need {LEAST} values a testbed" if min(len(own), len(reference)) < LEAST else ""


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
            p_value=p_ratio,
            p_brown_forsythe=p_levene,
            p_at_values=p_at_values,
            family=family,
            differs=p_ratio is not None and p_at_values is not None and max(p_ratio, p_at_values) <= alpha,
        )
        for spread, p_ratio, p_levene, p_at_values in zip(spreads, of_ratio, of_levene, of_values, strict=True)
    ]
