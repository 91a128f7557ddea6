"""Properties of every analysis of variance: invariances, sums, agreement of types and of models with their own cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinbed.analyses.anova.method import AnovaParams
from twinbed.analyses.anova.method import analysis as anova
from twinbed.observations.frame import Frame, encoded
from twinbed.statistics import anova as statistics


@st.composite
def designs(draw: st.DrawFn, balanced: bool = False) -> Frame:
    """Two factors with all their cells, two replicates or more in one cell at least; values of a seed."""
    a, b = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    counts = [2] * (a * b) if balanced else draw(st.lists(st.integers(1, 4), min_size=a * b, max_size=a * b))
    counts[0] += 1 if not balanced else 0
    seed = draw(st.integers(0, 2**32 - 1))
    cells = np.repeat(np.arange(a * b), counts)
    y = np.random.default_rng(seed).normal(size=len(cells)) + cells
    columns = {"a": encoded("a", (cells // b).tolist()), "b": encoded("b", (cells % b).tolist())}
    return Frame("made", "y", "", None, y, columns, ("a", "b"))


A, B, BOTH = (0,), (1,), (0, 1)
TERMS = [A, B, BOTH]


def reduced(frame: Frame) -> statistics.Cells:
    columns = [frame.columns[name] for name in ("a", "b")]
    return statistics.cells(frame.y, [column.codes for column in columns], [len(column.levels) for column in columns])


def f_of(frame: Frame, kind: str) -> list[float]:
    of = reduced(frame)
    square = statistics.fit(of, TERMS).mean_square or math.nan
    squares = statistics.sums_of_squares(of, TERMS, kind)
    return [each / statistics.freedom(term, of.levels) / square for each, term in zip(squares, TERMS, strict=True)]


def changed(frame: Frame, y: np.ndarray, order: np.ndarray | None = None) -> Frame:
    order = np.arange(len(y)) if order is None else order
    columns = {name: encoded(name, (each.codes[order]).tolist()) for name, each in frame.columns.items()}
    return Frame("made", "y", "", None, y[order], columns, frame.factors)


@settings(max_examples=25, deadline=None)
@given(designs(), st.floats(-1e6, 1e6), st.floats(0.01, 100))
def test_f_does_not_depend_on_origin_or_unit_or_order(frame, origin, unit):
    order = np.random.default_rng(1).permutation(len(frame))
    other = changed(frame, frame.y * unit + origin, order)
    for kind in ("I", "II", "III"):
        assert f_of(frame, kind) == pytest.approx(f_of(other, kind), rel=1e-5, abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(designs(balanced=True))
def test_types_agree_and_shares_sum_to_one_where_cells_are_balanced(frame):
    of = reduced(frame)
    found = [statistics.sums_of_squares(of, TERMS, kind) for kind in ("I", "II", "III")]
    assert found[1] == pytest.approx(found[0]) and found[2] == pytest.approx(found[0])
    assert sum(found[0]) + statistics.fit(of, TERMS).error == pytest.approx(of.total)


@settings(max_examples=5, deadline=None)
@given(designs())
def test_sequential_sums_of_squares_sum_to_the_total_and_effects_to_zero(frame):
    found = anova.run(frame, AnovaParams(formula="a * b", type="I"))
    assert sum(line.sum_of_squares for line in found.lines) + found.errors.sum_of_squares == pytest.approx(found.total)
    assert found.squares - found.mean_squares == pytest.approx(found.total)
    for factor in ("a", "b"):
        assert sum(each.estimate for each in found.effects if each.term == (factor,)) == pytest.approx(0, abs=1e-9)
    assert sum(row.residual for row in found.residuals) == pytest.approx(0, abs=1e-9)
    assert sum(row.residual**2 for row in found.residuals) == pytest.approx(found.errors.sum_of_squares)


@settings(max_examples=25, deadline=None)
@given(designs())
def test_sums_of_squares_are_differences_of_residual_sums(frame):
    """Against plain least squares on a dense matrix of every row."""
    of = reduced(frame)
    rows, sizes = of.codes[of.of_row], of.levels

    def residual(terms: list[tuple[int, ...]]) -> float:
        design = np.hstack([np.ones((len(frame), 1)), *(statistics.columns(term, rows, sizes) for term in terms)])
        fitted = design @ np.linalg.lstsq(design, frame.y, rcond=None)[0]
        return float(np.sum((frame.y - fitted) ** 2))

    a, b, both = TERMS
    known = {
        "I": [residual([]) - residual([a]), residual([a]) - residual([a, b]), residual([a, b]) - residual([a, b, both])],
        "II": [residual([b]) - residual([a, b]), residual([a]) - residual([a, b]), residual([a, b]) - residual([a, b, both])],
        "III": [residual([b, both]), residual([a, both]), residual([a, b])],
    }
    known["III"] = [each - residual([a, b, both]) for each in known["III"]]
    for kind, squares in known.items():
        assert statistics.sums_of_squares(of, TERMS, kind) == pytest.approx(squares, rel=1e-7, abs=1e-9)


def test_where_nothing_differs_p_values_are_uniform():
    """2,000 designs without effects: the share of p below 5 % is 5 % to four of its standard errors, for each term and type."""
    generator = np.random.default_rng(20190221)
    codes = [np.repeat([0, 1], 9), np.tile(np.repeat([0, 1, 2], [2, 3, 4]), 2)]
    rejected = np.zeros(3)
    from scipy.special import fdtrc

    for _ in range(2000):
        of = statistics.cells(generator.normal(size=18), codes, [2, 3])
        fit = statistics.fit(of, TERMS)
        squares = statistics.sums_of_squares(of, TERMS, "II")
        for at, term in enumerate(TERMS):
            free = statistics.freedom(term, of.levels)
            rejected[at] += fdtrc(free, fit.error_freedom, squares[at] / free / (fit.mean_square or 1)) < 0.05
    assert np.all(np.abs(rejected / 2000 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000))
