"""Which model an analysis of variance takes, what it refuses, and what it says where it cannot compute."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from tests.synthetic_results import planted_response, write_study

from twinbed.analyses.anova.method import AnovaParams
from twinbed.analyses.anova.method import analysis as anova
from twinbed.analyses.anova.model import parse
from twinbed.analyses.anova.result import Anova
from twinbed.analyses.anova.words import means_table
from twinbed.cli.extraction import extracted
from twinbed.metrics.metric import Scale
from twinbed.model.error import TwinbedError
from twinbed.observations.frame import Frame, encoded


def frame(y: list[float], scale: Scale | None = None, **columns: list) -> Frame:
    rows = {name: encoded(name, values) for name, values in columns.items()}
    return Frame("made", "y", "", scale, np.array(y, dtype=float), rows, tuple(rows))


def analysed(given: Frame, **params: object) -> Anova:
    return anova.run(given, AnovaParams(**params))


def crossed(*levels: int, replicates: int) -> dict[str, list[int]]:
    rows = [row for row in product(*(range(count) for count in levels)) for _ in range(replicates)]
    return {"abcdefgh"[at]: [row[at] for row in rows] for at in range(len(levels))}


NOISE = np.random.default_rng(3).normal(size=200).tolist()


# Formulas, as R's terms() reads them.


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a", ["a"]),
        ("a + b", ["a", "b"]),
        ("a * b", ["a", "b", "a:b"]),
        ("a:b + b + a", ["b", "a", "a:b"]),
        ("a * b * c", ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"]),
        ("(a + b + c)^2", ["a", "b", "c", "a:b", "a:c", "b:c"]),
        ("(a + b + c)**2 - a:c", ["a", "b", "c", "a:b", "b:c"]),
        ("a * (b + c)", ["a", "b", "c", "a:b", "a:c"]),
        ("a + a", ["a"]),
        ("`a b` * c", ["a b", "c", "a b:c"]),
    ],
)
def test_formulas(text, terms):
    formula = parse(text)
    assert [":".join(sorted(term)) for term in formula.terms] == [":".join(sorted(term.split(":"))) for term in terms]
    assert formula.response is None


def test_the_response_of_a_formula():
    assert (parse("y ~ a").response, parse("y ~ a").logarithm) == ("y", False)
    assert (parse("log(y) ~ a").response, parse("log(y) ~ a").logarithm) == ("y", True)


@pytest.mark.parametrize("text", ["", "a +", "a b", "(a", "a ^ b", "a % b", "~", "1 ~ a", "log(y ~ a", "a - a"])
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(TwinbedError, match="formula"):
        parse(text)


# The model that is taken.


def test_all_interactions_where_every_cell_has_replicates():
    result = analysed(frame(NOISE[:24], **crossed(2, 3, 2, replicates=2)))
    assert [":".join(term) for term in result.terms] == ["a", "b", "c", "a:b", "a:c", "b:c", "a:b:c"]
    assert result.errors.freedom == 12 and sum(line.share for line in result.lines) + result.errors.share == pytest.approx(1)


def test_one_value_a_cell_leaves_the_highest_interaction_to_the_errors_and_says_so():
    result = analysed(frame(NOISE[:6], **crossed(2, 3, replicates=1)))
    assert result.terms == (("a",), ("b",)) and result.errors.freedom == 2
    assert any("one value a cell" in note for note in result.notes)


def test_missing_cells_leave_out_what_needs_them_and_say_so():
    columns = crossed(2, 2, 2, replicates=2)
    kept = [row for row in range(16) if (columns["a"][row], columns["b"][row]) != (1, 1)]
    result = analysed(
        frame([NOISE[row] for row in kept], **{name: [each[row] for row in kept] for name, each in columns.items()})
    )
    assert ("a", "b") not in result.terms and ("a", "b", "c") not in result.terms and ("a", "c") in result.terms
    assert any(note.startswith("Left out: a:b, a:b:c; 2 of 8 cells") for note in result.notes)
    assert "equally, with predictions for the 2 cells without a value." in means_table(result).caption
    assert means_table(analysed(frame(NOISE[:16], **columns))).caption.endswith("equally.")


def test_the_logarithm_is_taken_of_positive_metrics_of_a_ratio_scale_only():
    columns = crossed(2, replicates=3)
    positive = [1.0, 2.0, 4.0, 10.0, 20.0, 40.0]
    result = analysed(frame(positive, Scale.RATIO, **columns))
    assert result.logarithm and any("logarithm" in note for note in result.notes)
    # Both levels have the spread of the same factors, so the geometric means are 2 and 20.
    assert [math.exp(each.mean) for each in result.means] == pytest.approx([2, 20])
    assert math.exp(result.differences[0].estimate) == pytest.approx(10)
    assert not analysed(frame(positive, **columns)).logarithm
    assert not analysed(frame(positive, Scale.RATIO, **columns), logarithm=False).logarithm
    zero = analysed(frame([0.0, *positive[1:]], Scale.RATIO, **columns))
    assert not zero.logarithm and any("no logarithm" in note for note in zero.notes)


def test_a_truncated_model_says_what_it_costs():
    """By hand: of 22 a accounts for 18, b for 2, a:b for 0, and 2 are errors."""
    y = [1, 2, 2, 3, 4, 5, 5, 6]
    given = frame([float(value) for value in y], **crossed(2, 2, replicates=2))
    whole = analysed(given)
    assert {":".join(line.term): line.sum_of_squares for line in whole.lines} == pytest.approx(
        {"a": 18, "b": 2, "a:b": 0}, abs=1e-12
    )
    result = analysed(given, drop_below=0.05)
    assert result.terms == (("a",), ("b",)) and result.truncation is not None and result.truncation.dropped == (("a", "b"),)
    kept = analysed(given, keep="a")
    cost = kept.truncation
    assert cost is not None and cost.dropped == (("b",), ("a", "b")) and cost.share == pytest.approx(2 / 22)
    assert cost.f == pytest.approx((2 / 2) / (2 / 4)) and kept.r_squared == pytest.approx(18 / 22)


def test_two_to_the_k_without_replicates_has_effects_and_no_intervals():
    """Jain (1991), table 17.1: memory size and cache size; effects 40, 20, 10 and 5, of the variation 76 %, 19 % and 5 %."""
    columns = {"cache": [1, 1, 2, 2], "memory": [4, 16, 4, 16]}
    result = analysed(frame([15.0, 45.0, 25.0, 75.0], **columns))
    effects = {each.term: each for each in result.signs}
    assert result.mean == 40
    assert {term: each.effect for term, each in effects.items()} == {("cache",): 10, ("memory",): 20, ("cache", "memory"): 5}
    assert [round(each.share * 100) for each in result.signs] == [19, 76, 5]
    assert all(each.interval is None for each in result.signs)


def test_two_to_the_k_with_replicates_is_jains_example():
    """Jain (1991), tables 18.1 to 18.3: effects 41, 21.5, 9.5, 5; SSE 102; intervals +-1.92 at 90 %."""
    y = [15, 18, 12, 45, 48, 51, 25, 28, 19, 75, 75, 81]
    columns = {"b": [1] * 6 + [2] * 6, "a": ([1] * 3 + [2] * 3) * 2}
    result = analysed(frame([float(value) for value in y], **columns), confidence=0.9, model="2kr")
    effects = {each.term: each for each in result.signs}
    assert result.mean == 41 and result.errors.sum_of_squares == pytest.approx(102)
    assert {term: each.effect for term, each in effects.items()} == pytest.approx({("b",): 9.5, ("a",): 21.5, ("b", "a"): 5})
    assert (result.total, result.squares, result.mean_squares) == pytest.approx((7032, 27204, 20172))
    half = effects["a",].interval
    assert half is not None and (half.high - half.low) / 2 == pytest.approx(1.92, abs=0.005)


def test_jains_one_factor_example():
    """Jain (1991), examples 20.1 to 20.5: code sizes on three processors; 10.4 % of the variation, F 0.7, table F 2.8."""
    y = [144, 120, 176, 288, 144, 101, 144, 211, 288, 72, 130, 180, 141, 374, 302]
    result = analysed(frame([float(value) for value in y], processor=["R"] * 5 + ["V"] * 5 + ["Z"] * 5), confidence=0.9)
    (line,) = result.lines
    assert result.mean == pytest.approx(187.7, abs=0.05)
    assert [round(each.estimate, 1) for each in result.effects] == [-13.3, -24.5, 37.7]
    assert line.share == pytest.approx(0.104, abs=0.0005) and line.f == pytest.approx(0.7, abs=0.01)
    assert line.critical == pytest.approx(2.8, abs=0.01)


# What is refused, and what cannot be computed.


@pytest.mark.parametrize(
    ("columns", "params", "expected"),
    [
        ({"a": [1, 1, 2, 2], "b": ["x", "x", "y", "y"]}, {}, "b and a cannot be separated"),
        ({"a": [1, 1, 1, 1]}, {}, "a has only one level: 1"),
        ({"a": [1, 1, 2, 2], "b": [1, 1, 1, 2]}, {"formula": "a * b"}, "a:b cannot be estimated: no value at a=1 b=2"),
        ({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]}, {"formula": "a:b"}, "a:b without a"),
        ({"a": [1, 1, 2, 2]}, {"factors": ("c",)}, "no column 'c'"),
        ({"a": [1, 1, 2, 2]}, {"model": "2kr"}, "not a 2\\^k r design: it has only one factor"),
        ({"a": [1, 2, 3, 3]}, {"model": "2kr"}, "not a 2\\^k r design: a has more than two levels"),
        ({"a": [1, 1, 2, 2]}, {"keep": "b"}, "the model has no term b"),
        ({"a": [1, 1, 2, 2]}, {"drop_below": 0.999}, "no term explains 99.9 %"),
        ({}, {}, "no factor has two levels"),
    ],
)
def test_what_cannot_be_analysed_is_refused_with_the_reason(columns, params, expected):
    with pytest.raises(TwinbedError, match=expected) as refused:
        analysed(frame([1.0, 2.0, 3.0, 5.0], **columns), **params)
    assert refused.value.advice


def test_three_factors_of_which_one_is_made_of_the_others():
    columns = crossed(2, 2, replicates=3)
    both = [f"{a}{b}" for a, b in zip(columns["a"], columns["b"], strict=True)]
    with pytest.raises(TwinbedError, match="c and a and b cannot be separated"):
        analysed(frame(NOISE[:12], **columns, c=both), formula="a + b + c")


def test_a_constant_response_and_logarithms_of_zero_are_refused():
    with pytest.raises(TwinbedError, match="y is 4 in every row"):
        analysed(frame([4.0] * 4, a=[1, 1, 2, 2]))
    with pytest.raises(TwinbedError, match="no logarithm in 2 of 4 rows"):
        analysed(frame([0.0, -1.0, 2.0, 3.0], a=[1, 1, 2, 2]), logarithm=True)


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_values_whose_squares_no_double_holds_are_refused(unit):
    with pytest.raises(TwinbedError, match="too large or too small to square"):
        analysed(frame([unit, 2 * unit, 3 * unit, 5 * unit], a=[1, 1, 2, 2]))


@pytest.mark.parametrize("y", [[1.0, 2.0, 4.0], [0.1, 0.1, 0.1, 0.3, 0.3, 0.3]])
def test_without_errors_there_is_no_f_and_it_is_said(y):
    levels = list(range(3)) if len(y) == 3 else [1, 1, 1, 2, 2, 2]
    result = analysed(frame(y, a=levels))
    assert result.lines[0].f is None and result.lines[0].p is None and result.lines[0].share == pytest.approx(1)
    assert all(each.interval is None for each in (*result.effects, *result.means, *result.differences))
    assert all(check.holds is None and check.reason for check in result.checks)
    assert any("no F, p or intervals" in note for note in result.notes)


def numbers(data: object) -> list[float]:
    if isinstance(data, dict):
        return [number for value in data.values() for number in numbers(value)]
    if isinstance(data, list | tuple):
        return [number for value in data for number in numbers(value)]
    return [data] if isinstance(data, float) else []


@pytest.mark.parametrize(
    ("y", "columns"),
    [
        ([1.0, 2.0, 4.0], {"a": [1, 2, 3]}),
        ([0.0, 0.0, 0.0, 5.0, 6.0, 7.5], {"a": [1, 1, 1, 2, 2, 2]}),
        ([0.0, 0.0, 0.0, 1.0], {"a": [1, 1, 2, 2]}),
        ([1e140, 2e140, 3e140, 5e140], {"a": [1, 1, 2, 2]}),
        ([1e-140, 2e-140, 3e-140, 5e-140], {"a": [1, 1, 2, 2]}),
        ([1.0, 2.0, 3.0, 9.0, 4.0], {"a": [1, 1, 2, 2, 1], "b": [1, 2, 1, 2, 1]}),
    ],
)
def test_nothing_is_nan_or_infinite(y, columns):
    result = numbers(asdict(analysed(frame(y, **columns)))) + numbers(anova.tables(analysed(frame(y, **columns))))
    assert result and all(math.isfinite(number) for number in result)


# Where assumptions fail.


def test_where_variances_differ_the_test_and_the_intervals_say_so():
    generator = np.random.default_rng(11)
    y = np.concatenate([generator.normal(10, 0.1, 12), generator.normal(12, 6, 12), generator.normal(11, 0.1, 12)]).tolist()
    levels = [1] * 12 + [2] * 12 + [3] * 12
    result = analysed(frame(y, a=levels))
    assert result.checks[0].holds is False
    assert {each.test for each in result.alternatives} >= {"Welch's ANOVA"}
    assert {each.method for each in result.differences} == {"Welch's t, Sidak", "Games-Howell"}
    assert {each.method for each in analysed(frame(y, a=levels), variances="equal").differences} == {"Sidak", "Tukey-Kramer"}


def test_of_several_factors_with_odd_errors_residuals_are_permuted():
    generator = np.random.default_rng(5)
    columns = crossed(2, 3, replicates=8)
    errors = generator.standard_t(1.5, size=48)
    y = (errors + 40 * np.array(columns["a"])).tolist()
    result = analysed(frame(y, **columns))
    assert result.checks[-1].assumption == "normal errors" and result.checks[-1].holds is False
    p = {":".join(each.term): each.p for each in result.alternatives if each.test.startswith("permutation")}
    assert p["a"] == 1 / 2000 and p["b"] > 0.01 and p["a:b"] > 0.01
    again = {":".join(each.term): each.p for each in analysed(frame(y, **columns)).alternatives if each.test.startswith("perm")}
    assert again == p


def test_of_several_factors_with_unequal_variances_f_and_intervals_are_by_hc3():
    generator = np.random.default_rng(8)
    columns = crossed(2, 3, replicates=10)
    spread = np.where(np.array(columns["b"]) == 2, 8.0, 0.2)
    y = (generator.normal(size=60) * spread + 3 * np.array(columns["a"])).tolist()
    result = analysed(frame(y, **columns), formula="a + b")
    assert result.checks[0].holds is False
    assert [":".join(each.term) for each in result.alternatives if each.test == "F (HC3)"] == ["a", "b"]
    assert {each.method for each in result.differences} == {"t, HC3", "Sidak, HC3", "Tukey-Kramer, HC3"}
    # What does not vary much is known better than the pooled errors say: levels 0 and 1 of b.
    pooled = analysed(frame(y, **columns), formula="a + b", variances="equal")
    first, again = (next(each for each in one.differences if each.factor == "b") for one in (result, pooled))
    assert first.standard_error is not None and again.standard_error is not None
    assert first.standard_error < 0.8 * again.standard_error


# Of a study.


def test_a_planted_response_is_recovered_from_a_study(tmp_path):
    respond = planted_response({"one": 1.0, "two": 0.5}, 0.02, 7)
    folder = write_study(tmp_path / "results", ["one", "two"], {"payload": ["500B", "1MiB"]}, 6, respond)
    result = anova.run(extracted(folder), AnovaParams(response="requests_per_second"))
    rows = anova.tables(result)
    lines = {row["component"]: row for row in rows["variance"]}
    assert lines["testbed"]["p"] < 1e-10 and lines["testbed"]["share"] > 0.99 and lines["payload"]["p"] > 0.01
    (testbeds,) = [row for row in rows["differences"] if row["factor"] == "testbed"]
    assert math.exp(testbeds["difference"]) == pytest.approx(0.5, rel=0.02)
    assert math.exp(testbeds["low"]) < 0.5 < math.exp(testbeds["high"])
