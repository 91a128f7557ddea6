"""Ratios of means from summaries, against the comparison of the values that were summed up (itself held to known answers in
``test_ratio_known.py``), and against arithmetic by hand."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from twinbed.analyses.compare.equivalence import ratio_test as of_values
from twinbed.statistics.summary_ratio import Summary, ratio_test

samples = st.lists(st.integers(1, 1000).map(float), min_size=2, max_size=12)


def summary(values: list[float]) -> Summary:
    return Summary(fmean(values), stdev(values) / math.sqrt(len(values)), len(values))


@given(samples, samples, st.sampled_from([0.02, 0.1, 0.5]))
def test_summaries_say_what_their_values_say(one: list[float], two: list[float], margin: float) -> None:
    # A zero makes the comparison of values one of arithmetic means, by Fieller's method, as this is.
    one = [*one, 0.0]
    assume(stdev(two) > 0)
    expected, found = of_values(one, two, margin, 0.05), ratio_test(summary(one), summary(two), margin, 0.05)
    assert expected is not None and expected.ratio == pytest.approx(found.ratio)
    assert found.p_equivalent == pytest.approx(expected.p_equivalent, abs=1e-9)
    assert found.p_different == pytest.approx(expected.p_different, abs=1e-9)
    if expected.interval is None:
        assert found.low is None and found.high is None
    else:
        assert (found.low, found.high) == pytest.approx((expected.interval.low, expected.interval.high), rel=1e-6, abs=1e-9)


def test_a_reference_without_spread_leaves_one_samples_t() -> None:
    """Ten values of mean 103 and standard error 1 against 100 exactly: t(0.95, 9) = 1.833, so 1.03 ± 0.01833."""
    found = ratio_test(Summary(103, 1, 10), Summary(100, 0, 10), 0.10, 0.05)
    assert (found.low, found.high) == pytest.approx((1.03 - 0.018331, 1.03 + 0.018331), abs=1e-5)
    # t = (110 - 103) / 1 = 7 and (103 - 90.9) / 1 = 12.1 on 9 degrees of freedom: p(7) = 0.0000315 (one-sided tables).
    assert found.p_equivalent == pytest.approx(3.15e-5, abs=2e-7)


def test_neither_varies() -> None:
    inside, outside = (ratio_test(Summary(value, 0, 3), Summary(100, 0, 3), 0.10, 0.05) for value in (110, 111))
    assert (inside.p_equivalent, inside.p_different) == (0.0, 1.0)
    assert (outside.p_equivalent, outside.p_different) == (1.0, 0.0)


def test_what_cannot_be_compared_is_refused() -> None:
    for one, two in ((Summary(1, 1, 1), Summary(1, 1, 2)), (Summary(1, 1, 2), Summary(0, 1, 2))):
        with pytest.raises(ValueError, match="two values each"):
            ratio_test(one, two, 0.1, 0.05)
