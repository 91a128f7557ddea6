"""`twinbed._core.loess` as Python sees it: what it takes, what its table has, what it refuses."""

from __future__ import annotations

import array

import numpy as np
import pytest

from twinbed import _core

X = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
Y = 3 * X - 1


@pytest.mark.parametrize(
    "x",
    [X, X.tolist(), X.astype(int), array.array("d", X.tolist()), np.repeat(X, 2)[::2], X.astype(np.float32)],
    ids=["float64", "list", "int64", "array", "strided", "float32"],
)
def test_any_sequence_of_numbers_is_taken(x):
    table, summary = _core.loess(x, Y, at=[2.5, 7.25])
    assert table.column_names == ["at", "fit", "standard_error", "low", "high"]
    assert table["at"].to_pylist() == [2.5, 7.25]
    assert table["fit"].to_pylist() == pytest.approx([6.5, 20.75])
    assert summary["observations"] == 10


def test_without_points_it_is_at_the_observations_with_their_robustness():
    y = Y + np.tile([0.1, -0.1], 5)
    y[4] += 100
    table, _ = _core.loess(X[::-1], y[::-1], span=1.0, degree=1, family="symmetric")
    assert table["at"].to_pylist() == X[::-1].tolist()
    robustness = table["robustness"].to_pylist()
    assert robustness[5] == 0 and min(robustness[:5] + robustness[6:]) > 0.5


def test_outside_the_observations_is_null_but_on_the_direct_surface():
    assert _core.loess(X, Y, at=[0.0, 11.0, float("nan")])[0]["fit"].to_pylist() == [None] * 3
    found = _core.loess(X, Y, surface="direct", at=[0.0, 11.0, float("nan")])[0]["fit"].to_pylist()
    assert found[:2] == pytest.approx([-1, 32]) and found[2] is None


def test_a_wider_level_is_a_wider_interval_about_the_same_curve():
    y = Y + np.sin(X * 5)
    narrow, wide = (_core.loess(X, y, level=level)[0].to_pydict() for level in (0.5, 0.99))
    assert narrow["fit"] == wide["fit"]
    assert all(outer < inner for outer, inner in zip(wide["low"], narrow["low"], strict=True))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"family": "normal"}, "expected gaussian or symmetric"),
        ({"surface": "flat"}, "expected interpolate or direct"),
        ({"level": 1.0}, "level 1"),
        ({"degree": 3}, "expected 0, 1 or 2"),
        ({"span": 0.1}, "take a larger span"),
        ({"weights": [0.0] * 10}, r"weights\[0\] is 0"),
        ({"weights": [1.0]}, "expected as many"),
    ],
)
def test_refusals_say_what_was_expected(given, message):
    with pytest.raises(ValueError, match=message):
        _core.loess(X, Y, **given)


def test_neighbours_that_are_all_ties_are_refused_with_the_mend():
    with pytest.raises(ValueError, match="take a span of more than 8 of them"):
        _core.loess([1.0] * 8 + [2.0, 3.0], Y, surface="direct", span=0.5)


def test_what_is_no_number_is_a_type_error():
    with pytest.raises(TypeError):
        _core.loess(["a"], [1.0])
