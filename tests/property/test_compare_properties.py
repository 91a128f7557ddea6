"""Properties of every comparison: mirrored by a swap, blind to units and to the order of replicates, Holm's order."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twinbed.statistics import bootstrap, fairness, nominal, ordinal, quantile, spread
from twinbed.statistics.bounds import Bounds
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.ratio import ratio_test
from twinbed.statistics.trend import trend

positive = st.lists(st.integers(1, 10_000).map(lambda value: value / 100), min_size=5, max_size=14)
names = st.lists(st.integers(0, 3).map(float), min_size=2, max_size=12)
p_values = st.lists(st.floats(0, 1), max_size=12)
quick = settings(max_examples=40, deadline=None, derandomize=True)


def mirrored(found: Bounds | None, other: Bounds | None) -> bool:
    if found is None or other is None:
        return found is other
    return found[:2] == pytest.approx((1 / other.high, 1 / other.low), rel=1e-6)


@quick
@given(positive, positive)
def test_swapping_mirrors_ratios(one: list[float], two: list[float]) -> None:
    forth, back = ratio_test(one, two, 0.1, 0.05), ratio_test(two, one, 0.1, 0.05)
    assert forth is not None and back is not None
    assert mirrored(forth.interval, back.interval)
    assert forth.p_equivalent == pytest.approx(back.p_equivalent, rel=1e-6, abs=1e-12)
    assert forth.p_different == pytest.approx(back.p_different, rel=1e-6, abs=1e-12)
    assert mirrored(quantile.median_ratio_interval(one, two, 0.95), quantile.median_ratio_interval(two, one, 0.95))
    assert mirrored(spread.deviation_ratio_interval(one, two, 0.95), spread.deviation_ratio_interval(two, one, 0.95))
    for test in (spread.equal_deviations, spread.brown_forsythe):
        p_forth, p_back = test(one, two), test(two, one)
        assert p_forth is p_back or p_forth == pytest.approx(p_back, rel=1e-6, abs=1e-12)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 999).map(float), min_size=10, max_size=14),
    st.lists(st.integers(1, 999).map(float), min_size=10, max_size=14),
)
def test_the_bootstrap_is_mirrored_and_blind_to_units_and_order(one: list[float], two: list[float]) -> None:
    found = bootstrap.ratio_interval(one, two, 0.90)
    assert mirrored(found, bootstrap.ratio_interval(two, one, 0.90))
    assert found == bootstrap.ratio_interval(one[::-1], two[3:] + two[:3], 0.90)
    scaled = bootstrap.ratio_interval([8 * value for value in one], [8 * value for value in two], 0.90)
    assert (found is None) == (scaled is None)
    if found and scaled:
        assert scaled[:2] == pytest.approx(found[:2], rel=1e-9)


def everything(one: list[float], two: list[float]) -> list[float]:
    """All numbers that a comparison of two samples on a ratio scale prints and that have no unit; -9 where there is none."""
    test = ratio_test(one, two, 0.1, 0.05)
    assert test is not None
    found = [
        *(test.ratio, test.p_equivalent, test.p_different, *(test.interval or ()), *(test.wide or ())),
        *(quantile.median_ratio_interval(one, two, 0.95) or ()),
        *(spread.deviation_ratio_interval(one, two, 0.95) or ()),
        spread.equal_deviations(one, two),
        spread.brown_forsythe(one, two),
        fairness.jain(one),
        *(fairness.jain_interval(one, 0.95) or ()),
        ordinal.cliffs_delta(one, two),
    ]
    return [-9.0 if value is None else value for value in found]


@quick
@given(positive, positive, st.sampled_from([1e-9, 0.125, 1000.0, 2.0**40]))
def test_units_change_nothing(one: list[float], two: list[float], factor: float) -> None:
    before, after = everything(one, two), everything([factor * x for x in one], [factor * x for x in two])
    assert after == pytest.approx(before, rel=1e-6, abs=1e-9)


@quick
@given(positive, positive, st.randoms(use_true_random=False))
def test_the_order_of_replicates_changes_nothing(one: list[float], two: list[float], chance: Any) -> None:
    mixed = [chance.sample(values, len(values)) for values in (one, two)]
    assert everything(*mixed) == pytest.approx(everything(one, two), rel=1e-9, abs=1e-12)


@quick
@given(p_values, p_values)
def test_more_metrics_never_make_a_p_value_smaller(some: list[float], more: list[float]) -> None:
    alone, beside = holm(some), holm([*some, *more])[: len(some)]
    assert all(after >= before for before, after in zip(alone, beside, strict=True))
    assert all(adjusted >= raw for raw, adjusted in zip(some, alone, strict=True))


@quick
@given(names, names)
def test_names_can_be_called_anything(one: list[float], two: list[float]) -> None:
    call = {0.0: 7.0, 1.0: -3.0, 2.0: 5.0, 3.0: 0.5}
    found = nominal.nominal_test(one, two, 0.1)
    other = nominal.nominal_test([call[name] for name in one], [call[name] for name in two], 0.1)
    assert (found.total_variation, found.p_equivalent) == pytest.approx((other.total_variation, other.p_equivalent), abs=1e-9)
    assert 0 <= found.total_variation <= 1
    assert all(p is not None and 0 <= p <= 1 for p in (found.p_same, found.p_equivalent, found.p_different))


@quick
@given(positive, positive)
def test_only_order_counts_on_an_ordinal_scale(one: list[float], two: list[float]) -> None:
    found = ordinal.ordinal_test(one, two, 0.1, 0.05)
    assert found == ordinal.ordinal_test([x**3 for x in one], [x**3 for x in two], 0.1, 0.05)
    back = ordinal.ordinal_test(two, one, 0.1, 0.05)
    assert (found.delta, found.wide.low) == pytest.approx((-back.delta, -back.wide.high), abs=1e-9)
    assert -1 <= found.wide.low <= found.delta <= found.wide.high <= 1
    assert found.p_different == pytest.approx(back.p_different)


@quick
@given(st.lists(st.floats(0.01, 100), min_size=5, max_size=20))
def test_fairness_lies_between_its_bounds(shares: list[float]) -> None:
    assume(max(shares) > 1.001 * min(shares))
    found, bounds = fairness.jain(shares), fairness.jain_interval(shares, 0.95)
    assert found is not None and 1 / len(shares) - 1e-12 <= found <= 1
    assert bounds is not None and 0 <= bounds.low <= bounds.high <= 1


@quick
@given(st.integers(1, 80), st.floats(1e-9, 1e12), st.data())
def test_fairness_is_one_for_equal_shares_and_a_share_for_one_only(n: int, share: float, data: st.DataObject) -> None:
    assert fairness.jain([share] * n) == pytest.approx(1, rel=1e-12)
    alone = data.draw(st.integers(0, n - 1))
    assert fairness.jain([share if at == alone else 0.0 for at in range(n)]) == pytest.approx(1 / n, rel=1e-12)


@quick
@given(st.lists(positive, min_size=1, max_size=4))
def test_sizes_of_cells_are_no_trend(cells: list[list[float]]) -> None:
    """How much one cell varies changes neither S nor the p-value; reversing time turns S over."""
    series = [[(at, math.log(value)) for at, value in enumerate(cell)] for cell in cells]
    moved = [[(at, 2.0**8 * value) for at, value in series[0]], *series[1:]]
    found, scaled = trend(series), trend(moved)
    back = trend([[(-at, value) for at, value in cell] for cell in series])
    assert found is not None and scaled is not None and back is not None
    assert (found.rising, found.p_value) == (scaled.rising, scaled.p_value)
    assert (found.rising, found.p_value) == (-back.rising, pytest.approx(back.p_value))
