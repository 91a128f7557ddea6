"""Printed numbers and arithmetic over everything that rounds to them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinbed.published.rounding import Range, evaluate, exponential, parse, printed_range, root, rounds_to, shown, significant

numbers = st.fractions(-1000, 1000, max_denominator=1000)
ranges = st.builds(lambda one, two: Range(min(one, two), max(one, two)), numbers, numbers)
shares = st.fractions(0, 1, max_denominator=100)


def inside(each: Range, share: Fraction) -> Fraction:
    return each.low + share * (each.high - each.low)


def holds(each: Range, value: Fraction) -> bool:
    return each.low <= value <= each.high


@pytest.mark.parametrize(
    ("printed", "value", "decimals"),
    [
        ("42", Fraction(42), 0),
        ("5.00", Fraction(5), 2),
        (".01", Fraction(1, 100), 2),
        ("-0.0004", Fraction(-4, 10000), 4),
        ("80,286", Fraction(80286), 0),
        ("E+5531", Fraction(5531), 0),
        ("E-28214", Fraction(-28214), 0),
        ("94e1", Fraction(940), -1),
    ],
)
def test_a_printed_number(printed: str, value: Fraction, decimals: int) -> None:
    assert parse(printed) == (value, decimals)


@pytest.mark.parametrize("printed", ["", "***", "✓", "NT", "1.2.3", "1e", "±1", "1 2", "E5531x", "."])
def test_what_is_no_number(printed: str) -> None:
    assert parse(printed) is None


def test_what_rounds_to_a_number() -> None:
    assert printed_range(Fraction("0.024"), 3) == Range(Fraction("0.0235"), Fraction("0.0245"))
    assert printed_range(Fraction(940), -1) == Range(Fraction(935), Fraction(945))
    assert rounds_to(Fraction("0.0245"), Fraction("0.024"), 3) and not rounds_to(Fraction("0.02451"), Fraction("0.024"), 3)


def test_numbers_for_the_eye() -> None:
    assert shown(Fraction("0.76"), 3) == "0.760" and shown(Fraction(841530), -2) == "841500"
    assert shown(Fraction(-1, 1000), 2) == "0.00"
    assert significant(Fraction(1, 3), 4) == "0.3333" and significant(Fraction(1234567), 4) == "1234567"


@given(ranges, ranges, shares, shares)
def test_results_hold_those_of_all_members(one: Range, two: Range, at: Fraction, other: Fraction) -> None:
    x, y = inside(one, at), inside(two, other)
    assert holds(one + two, x + y) and holds(one - two, x - y) and holds(one * two, x * y)
    assert holds(abs(one), abs(x)) and holds(one.squared(), x * x) and holds(-one, -x)
    if two.low <= 0 <= two.high:
        with pytest.raises(ZeroDivisionError):
            one / two
    else:
        assert holds(one / two, x / y)


@given(ranges, shares)
def test_roots_and_exponentials_hold_them_too(one: Range, at: Fraction) -> None:
    x = inside(one, at)
    found = root(Range(max(one.low, Fraction(0)), max(one.high, Fraction(0))))
    assert found.low**2 <= max(x, Fraction(0)) <= found.high**2
    small = Range(one.low / 100, one.high / 100)
    grown = exponential(small)
    assert float(grown.low) <= math.exp(x / 100) * (1 + 1e-12) and math.exp(x / 100) <= float(grown.high) * (1 + 1e-12)


def test_formulas() -> None:
    assert evaluate("-0.176 + (40 - 1) * 0.024", rounded=False) == Range.exactly(Fraction("0.760"))
    assert evaluate("-0.176 + (40 - 1) * 0.024", rounded=True) == Range(Fraction("0.7400"), Fraction("0.7800"))
    assert evaluate("2 ** 10 / 4", rounded=True) == Range.exactly(256)
    found = evaluate("exp(1.0)", rounded=False)
    assert float(found.middle) == pytest.approx(math.e, rel=1e-15) and found.low < found.high


@pytest.mark.parametrize("formula", ["x + 1", "__import__('os')", "1 if 1 else 2", "'a'", "exp(1, 2)", "1 // 2", "log(2)"])
def test_anything_else_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        evaluate(formula, rounded=False)
