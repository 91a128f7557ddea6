"""Least squares and its diagnostics: refusals, degenerate data, and what must not change when data are written otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import chdtrc

from twinbed.statistics.regression.box_cox import box_cox, transformed
from twinbed.statistics.regression.collinearity import first_order, inflation
from twinbed.statistics.regression.design import bind
from twinbed.statistics.regression.error import RegressionError
from twinbed.statistics.regression.evaluation import Categorical, Column, Numeric
from twinbed.statistics.regression.formula import read
from twinbed.statistics.regression.inference import classical, difference, hc3, influence
from twinbed.statistics.regression.least_squares import fit_formula
from twinbed.statistics.regression.mixed import mixed
from twinbed.statistics.regression.residuals import normality, white
from twinbed.statistics.regression.robust import robust


def drawn(seed: int, n: int = 120) -> dict[str, Column]:
    chance = np.random.default_rng(seed)
    x, g = chance.uniform(1, 10, n), chance.integers(0, 3, n)
    y = np.exp(1 + 0.1 * x + 0.2 * g + chance.normal(0, 0.2, n))
    return {"y": Numeric(y), "x": Numeric(x), "g": Categorical(g, ("a", "b", "c"))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y ~ x + I(2 * x + 1)", "= (Constant) + 2 (x)"),
        ("y ~ g + C(h)", "(h q) = (g b)"),
        ("y ~ g:h", "no row has"),
        ("y ~ x * C(one)", "columns depend on each other: (x * one 2) = 3 (one 2)"),
    ],
)
def test_columns_that_cannot_be_told_apart_are_named(text: str, expected: str) -> None:
    g = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2])
    x = np.arange(9.0) + 1
    data: dict[str, Column] = {
        "y": Numeric(x**2),
        "x": Numeric(x),
        "g": Categorical(g, ("a", "b", "c")),
        "h": Categorical((g == 1).astype(int), ("p", "q")),
        "one": Categorical((x == 3).astype(int), ("1", "2")),
    }
    with pytest.raises(RegressionError) as error:
        fit_formula(read(text), data)
    assert expected in error.value.message


def test_as_many_coefficients_as_rows() -> None:
    data: dict[str, Column] = {"y": Numeric(np.array([1.0, 2, 4])), "x": Numeric(np.array([1.0, 2, 3]))}
    with pytest.raises(RegressionError, match="3 rows do not determine 3 coefficients"):
        fit_formula(read("y ~ x + I(x^2)"), data)


def test_a_row_that_alone_tells_a_coefficient() -> None:
    x = np.arange(8.0)
    data: dict[str, Column] = {
        "y": Numeric(x + np.array([0.1, -0.2, 0.1, 0.3, -0.1, 0, 0.2, 5])),
        "x": Numeric(x),
        "g": Categorical((x == 7).astype(int), ("no", "yes")),
    }
    _, fit = fit_formula(read("y ~ x + g"), data)
    with pytest.raises(RegressionError, match="row 8 of those used alone determines"):
        hc3(fit)
    estimate = influence(fit)
    assert list(np.flatnonzero(estimate.alone)) == [7]
    assert np.isnan(estimate.cooks_distance[7])
    assert estimate.outlier != 7


def test_an_exact_fit_has_no_residuals() -> None:
    x = np.arange(10.0)
    _, fit = fit_formula(read("y ~ x"), {"y": Numeric(0.1 + 0.3 * x), "x": Numeric(x)})
    assert (fit.exact, fit.residual_sum, fit.test_of_all) == (True, 0.0, None)
    assert fit.coefficients == pytest.approx([0.1, 0.3], rel=1e-12)


def test_inflation_of_parts_that_cannot_be_told_apart() -> None:
    """a:b alone is a fine model; a + b, the part before interactions, is none where b is 1 - a."""
    chance = np.random.default_rng(7)
    a = chance.uniform(1, 2, 30)
    data: dict[str, Column] = {"y": Numeric(chance.normal(size=30)), "a": Numeric(a), "b": Numeric(1 - a)}
    design, _ = fit_formula(read("y ~ a:b"), data)
    first = bind(first_order(design.formula), data)
    assert [term.label for term in first.terms] == ["a", "b"]
    assert inflation(first.terms, first.matrix) == []


def test_a_robust_fit_without_scale() -> None:
    g = np.repeat([0, 1], [10, 4])
    y = np.concatenate([np.ones(10), [1, 5, 2, 4]])
    _, fit = fit_formula(read("y ~ 0 + g"), {"y": Numeric(y), "g": Categorical(g, ("a", "b"))})
    with pytest.raises(RegressionError, match="at least half of the rows are fitted exactly"):
        robust(fit, y)


def test_box_cox_refuses_what_is_not_above_0() -> None:
    data = drawn(1)
    _, fit = fit_formula(read("y ~ x"), data)
    with pytest.raises(RegressionError, match="2 of 120 rows are not, such as 0"):
        box_cox(np.concatenate([[0, -1], np.ones(118)]), fit.q)


@pytest.mark.parametrize(("power", "simple"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (-1.0, -1.0)])
def test_box_cox_finds_the_planted_power(power: float, simple: float) -> None:
    chance = np.random.default_rng(3)
    x = chance.uniform(0, 10, 400)
    scaled = 2 + x + chance.normal(0, 0.3, 400)
    y = np.exp(scaled / 4) if power == 0 else scaled ** (1 / power)
    _, fit = fit_formula(read("y ~ x"), {"y": Numeric(y), "x": Numeric(x)})
    estimate = box_cox(y, fit.q)
    assert (estimate.simple, estimate.simple_inside) == (simple, True)


def test_the_transformation_is_continuous_at_0() -> None:
    y = np.array([0.5, 1, 7])
    assert transformed(y, 1e-9) == pytest.approx(np.log(y), rel=1e-8)
    assert transformed(y, 2) == pytest.approx((y**2 - 1) / 2)


def test_whites_test_is_that_of_all_distinct_products() -> None:
    """Against the regression written out in full, by its pseudo-inverse."""
    data = drawn(4)
    design, fit = fit_formula(read("y ~ x * g"), data)
    columns = design.matrix[:, 1:]
    products = np.stack([columns[:, i] * columns[:, j] for i in range(5) for j in range(i, 5)], axis=1)
    whole = np.hstack([design.matrix, products])
    squares = fit.residuals**2
    left = squares - whole @ (np.linalg.pinv(whole) @ squares)
    statistic = fit.n * (1 - left @ left / np.sum((squares - squares.mean()) ** 2))
    rank = np.linalg.matrix_rank(whole) - 1
    estimate = white(fit, design.matrix)
    assert estimate is not None
    assert (estimate.degrees_of_freedom, estimate.statistic) == (rank, pytest.approx(statistic, rel=1e-8))
    assert estimate.p_value == pytest.approx(chdtrc(rank, statistic), rel=1e-6)


def test_whites_test_needs_more_rows_than_products() -> None:
    design, fit = fit_formula(read("y ~ x"), drawn(5, n=3))
    assert white(fit, design.matrix) is None


def test_a_random_effect_that_cannot_be_told() -> None:
    _, fit = fit_formula(read("y ~ x"), data := drawn(6))
    design, _ = fit_formula(read("y ~ x"), data)
    for groups, text in ((np.zeros(120, dtype=int), "one group only"), (np.arange(120), "a group for every row")):
        with pytest.raises(RegressionError, match=text):
            mixed(fit, design.matrix, groups)


def test_a_random_effect_that_is_not_there_leaves_least_squares() -> None:
    chance = np.random.default_rng(2)
    groups = np.repeat(np.arange(10), 6)
    x = chance.normal(size=60)
    # Noise whose groups have one mean, so that nothing lies between them.
    noise = chance.normal(size=(10, 6))
    y = x + (noise - noise.mean(axis=1, keepdims=True)).ravel()
    design, fit = fit_formula(read("y ~ x"), {"y": Numeric(y), "x": Numeric(x)})
    estimate = mixed(fit, design.matrix, groups)
    assert (estimate.group_variance, estimate.p_value, estimate.intraclass_correlation) == (0.0, 1.0, 0.0)
    assert estimate.coefficients == pytest.approx(fit.coefficients, rel=1e-12)
    assert estimate.covariance == pytest.approx(classical(fit), rel=1e-10)


@pytest.mark.parametrize("values", [[1.0, 2, 3], [2.0] * 20])
def test_normality_of_nothing(values: list[float]) -> None:
    assert normality(np.array(values)) is None


def test_the_seeds_effect_of_containers_at_40_pairs() -> None:
    """LDRD report, 3.1.2: -0.176 + 39 x 0.024 is 0.760, which is 113.8 %, not the 0.776 and 117.314 % printed there."""
    chance = np.random.default_rng(8)
    nics = Categorical(chance.integers(0, 3, 200), ("e1000", "virtio", "container"))
    data: dict[str, Column] = {
        "rps": Numeric(chance.uniform(1, 2, 200)),
        "pairs": Numeric(chance.integers(1, 41, 200).astype(float)),
        "nic": nics,
    }
    design, _ = fit_formula(read("log(rps) ~ I(centre(pairs, 1)^2) + centre(pairs, 1) * nic"), data)
    printed = {
        "centre(pairs, 1)^2": -0.0002,
        "centre(pairs, 1)": -0.034,
        "nic virtio": -0.070,
        "nic container": -0.176,
        "centre(pairs, 1) * nic virtio": 0.017,
        "centre(pairs, 1) * nic container": 0.024,
        "Constant": 2.093,
    }
    coefficients = np.array([printed[label] for label in design.labels])
    contrast = difference(design, data, "nic", "container", "e1000", {"pairs": 40.0})
    assert contrast @ coefficients == pytest.approx(0.760, abs=1e-12)
    assert 100 * np.expm1(contrast @ coefficients) == pytest.approx(113.8, abs=0.05)
    between = difference(design, data, "pairs", 40.0, 1.0, {"nic": "container"})
    assert between @ coefficients == pytest.approx(39 * (0.024 - 0.034) - 39**2 * 0.0002, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e6), st.floats(-100, 100))
def test_units_change_no_test(seed: int, scale: float, shift: float) -> None:
    """t, leverage and Cook's distance are the same whatever the units of x and y."""
    data = drawn(seed, n=40)
    x, y = data["x"], data["y"]
    assert isinstance(x, Numeric)
    assert isinstance(y, Numeric)
    _, fit = fit_formula(read("y ~ x + g"), data)
    _, other = fit_formula(read("y ~ x + g"), {**data, "x": Numeric(scale * x.values + shift), "y": Numeric(scale * y.values)})
    one, two = (each.coefficients / np.sqrt(np.diag(classical(each))) for each in (fit, other))
    assert two[1:] == pytest.approx(one[1:], rel=1e-6)
    assert other.leverage == pytest.approx(fit.leverage, rel=1e-6)
    assert influence(other).cooks_distance == pytest.approx(influence(fit).cooks_distance, rel=1e-5, abs=1e-12)
    assert fit.leverage.sum() == pytest.approx(fit.p)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_base_levels_and_the_order_of_rows_change_no_fit(seed: int) -> None:
    data = drawn(seed, n=60)
    design, fit = fit_formula(read("log(y) ~ x * g"), data)
    _, other = fit_formula(read("log(y) ~ x * g"), data, {"g": "c"})
    assert other.fitted == pytest.approx(fit.fitted, rel=1e-9)
    turned: dict[str, Column] = {}
    for name, column in data.items():
        turned[name] = (
            Numeric(column.values[::-1]) if isinstance(column, Numeric) else Categorical(column.codes[::-1], column.levels)
        )
    again, reverse = fit_formula(read("log(y) ~ x * g"), turned)
    assert reverse.coefficients == pytest.approx(fit.coefficients, rel=1e-8)
    for one, two in ((white(fit, design.matrix), white(reverse, again.matrix)),):
        assert one is not None
        assert two is not None
        assert two.statistic == pytest.approx(one.statistic, rel=1e-6)
