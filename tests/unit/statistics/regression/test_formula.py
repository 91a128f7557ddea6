"""Formulas: what they mean, and where the errors in them are."""

from __future__ import annotations

import numpy as np
import pytest

from twinbed.statistics.regression.design import bind
from twinbed.statistics.regression.error import FormulaError, RegressionError
from twinbed.statistics.regression.evaluation import Categorical, Column, Numeric
from twinbed.statistics.regression.formula import read


def terms(text: str) -> list[str]:
    formula = read(text)
    return [*(["1"] if formula.constant else []), *(":".join(map(str, term)) for term in formula.terms)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("y ~ a", ["1", "a"]),
        ("y ~ a * b", ["1", "a", "b", "a:b"]),
        ("y ~ a:b + a", ["1", "a", "a:b"]),
        ("y ~ (a + b + c)^2", ["1", "a", "b", "c", "a:b", "a:c", "b:c"]),
        ("y ~ a * b * c - a:b:c", ["1", "a", "b", "c", "a:b", "a:c", "b:c"]),
        ("y ~ a * (b + c)", ["1", "a", "b", "c", "a:b", "a:c"]),
        ("y ~ 0 + a", ["a"]),
        ("y ~ a - 1", ["a"]),
        ("y ~ b:(0 + a) + (0 + a + b)^2", ["a", "b", "b:a"]),
        ("y ~ -1 + a", ["a"]),
        ("y ~ 1", ["1"]),
        ("y ~ a + b:a + a:b", ["1", "a", "b:a"]),
        ("y ~ a + a", ["1", "a"]),
        ("y ~ a:a", ["1", "a"]),
        ("log(y / 2) ~ I(x^2) + centre(x, -1) + log2(`packet size`)", ["1", "I(x^2)", "centre(x, -1)", "log2(`packet size`)"]),
        ("y ~ C(host, base=machine 1) + C(n, base='2.0')", ["1", "C(host, base=machine 1)", "C(n, base=2.0)"]),
        ("y ~ C(host, base='m (1)') + b", ["1", "C(host, base=m (1))", "b"]),
        ("y ~ I(x) + center(z)", ["1", "x", "centre(z)"]),
    ],
)
def test_terms(text: str, wanted: list[str]) -> None:
    assert terms(text) == wanted


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("y x", 3, "RESPONSE ~ TERMS"),
        ("y ~ a +", 7, "expected a column or function, but the formula ends"),
        ("y ~ log(a", 9, "expected ')'"),
        ("y ~ lgo(a)", 4, "no function 'lgo'"),
        ("y ~ a $ b", 6, "'$' has no meaning here"),
        ("y ~ a b", 6, "'b' is not allowed here"),
        ("y ~ a - b", 8, "cannot remove a term that is not there"),
        ("y ~ a + 3", 8, "are 1 and 0"),
        ("y ~ (a + b)^9", 12, "expected a whole power from 1 to 8"),
        ("y ~ x^2", 4, "one term to a power is itself"),
        ("y ~ y", 4, "cannot explain itself"),
        ("y ~ boxcox(a)", 4, "boxcox is for the response"),
        ("y ~ C(a + b)", 6, "C takes the name of a column"),
        ("y ~ 1 / x", 6, "'/' has no meaning here"),
        ("y ~ log(__import__('os'))", 8, "no function '__import__'"),
        ("y ~ I(x.real if x else [1])", 6, "has no meaning here"),
        ("y ~ log('x')", 8, "has no meaning here"),
        ("y ~ C(a, level=2)", 9, "base=LEVEL"),
        ("y ~ log(a, 2)", 11, "log takes one number"),
        ("y ~ centre(a, b)", 14, "give a number"),
    ],
)
def test_errors_point_at_their_place(text: str, position: int, expected: str) -> None:
    with pytest.raises(FormulaError, match="formula, character") as error:
        read(text)
    assert (error.value.position, expected in error.value.message) == (position, True), error.value.message
    assert error.value.message.splitlines()[2].index("^") == 2 + position


X = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
G = Categorical(np.array([0, 0, 1, 1, 2, 2]), ("a", "b", "c"))
DATA: dict[str, Column] = {"y": Numeric(X**2), "x": Numeric(X), "g": G, "never": Categorical(G.codes, ("p", "q", "r", "s"))}


def test_columns_of_the_matrix() -> None:
    design = bind(read("log(y) ~ centre(x) * C(g, base=b)"), DATA)
    assert design.labels == ("Constant", "centre(x)", "g a", "g c", "centre(x) * g a", "centre(x) * g c")
    assert design.matrix[:, 1] == pytest.approx(X - 4)
    assert design.matrix[:, 4] == pytest.approx(np.where(G.codes == 0, X - 4, 0))
    assert design.response == pytest.approx(2 * np.log(X))


def test_a_base_level_stays_where_the_column_is_in_other_functions_too() -> None:
    design = bind(read("y ~ C(x, base=8) + log(x) + exp(2)"), DATA)
    assert design.labels[:3] == ("Constant", "x 1", "x 2") and design.labels[-2:] == ("log(x)", "exp(2)")


def test_an_interaction_beside_the_constant_alone_is_held_against_one_cell() -> None:
    h = Categorical(np.array([0, 1, 0, 1, 0, 1]), ("no", "yes"))
    design = bind(read("y ~ g:h"), {**DATA, "h": h})
    assert design.labels[:3] == ("Constant", "g b * h no", "g c * h no")
    assert np.linalg.matrix_rank(design.matrix) == 6
    assert list(design.at({"g": "c", "h": "no"})) == [1, 0, 1, 0, 0, 0]
    assert list(design.at({"g": "a", "h": "no"})) == [1, 0, 0, 0, 0, 0]


def test_the_mean_is_that_of_the_rows_that_are_used() -> None:
    design = bind(read("y ~ centre(x)"), {**DATA, "y": Numeric(np.array([1, 2, 3, 5, np.nan, np.nan]))})
    assert design.matrix[:, 1] == pytest.approx([-1.5, -0.5, 0.5, 1.5])
    assert (list(design.rows), design.missing) == ([0, 1, 2, 3], {"y": 2})


def test_levels_that_are_sizes_are_numbers_within_a_function() -> None:
    sizes = Categorical(G.codes, ("512B", "1KiB", "2KiB"), (512.0, 1024.0, 2048.0))
    design = bind(read("y ~ log2(size)"), {**DATA, "size": sizes})
    assert list(design.matrix[:, 1]) == [9, 9, 10, 10, 11, 11]
    assert bind(read("y ~ size"), {**DATA, "size": sizes}).labels == ("Constant", "size 1KiB", "size 2KiB")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y ~ z", "no column 'z'"),
        ("y ~ log(x - 1)", "needs values above 0: 1 of 6 are not, the first in row 1 (0)"),
        ("y ~ sqrt(x - 3)", "not a finite number in 2 rows, the first row 1"),
        ("y ~ I(1 / (x - 3))", "not a finite number in 1 rows, the first row 3"),
        ("y ~ log(g)", "column g is not numeric (it holds a, b, c)"),
        ("g ~ x", "column g is not numeric"),
        ("C(y) ~ x", "cannot be a response"),
        ("y ~ C(never, base=s)", "base level 's' of never occurs in no row"),
        ("y ~ C(g, base=z)", "base level 'z' of g does not occur"),
        ("I(y * 0) ~ x", "the same in all 6 rows"),
        ("y ~ 0", "no term and no constant"),
        ("y ~ log(C(x))", "C cannot stand within another function"),
    ],
)
def test_what_the_data_do_not_have(text: str, expected: str) -> None:
    with pytest.raises(RegressionError) as error:
        bind(read(text), DATA)
    assert expected in error.value.message


def test_a_base_that_is_no_variable_of_the_formula() -> None:
    with pytest.raises(RegressionError, match="base level is given for x"):
        bind(read("y ~ log(x)"), DATA, {"x": "1"})


def test_rows_without_any_value() -> None:
    with pytest.raises(RegressionError, match="no row has all of the formula's columns: missing are y in 6 of 6 rows"):
        bind(read("y ~ x"), {**DATA, "y": Numeric(np.full(6, np.nan))})


def test_an_infinite_value() -> None:
    with pytest.raises(RegressionError, match="column x holds an infinite value"):
        bind(read("y ~ x"), {**DATA, "x": Numeric(np.array([1, 2, np.inf, 3, 4, 5]))})
