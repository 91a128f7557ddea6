"""What moves with an anomaly beyond work and time: on exact mixes, against scipy's NNLS and a regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import rankdata, spearmanr, t

from twinbed.statistics.anomaly import Form, Given, Measure, Moving, Runs, _at_equal_n, _bounded, moving

SHARES = {1: 1.0, 2: 1.1, 4: 1.05}
N = np.repeat(list(SHARES), 12)
CHANCE = np.random.default_rng(8)
RATE = 500 * np.array([SHARES[n] for n in N]) * np.exp(CHANCE.normal(0, 0.02, len(N)))
RUNS = Runs(RATE.tolist(), N.tolist(), (RATE * N).tolist())
COUNT = np.exp(CHANCE.normal(0, 0.01, len(N)))
"""What a count strays by."""


def named(**counts: np.ndarray) -> dict[str, Moving]:
    return {row.metric: row for row in moving(RUNS, {name: Given(Measure.PER_WORK, y.tolist()) for name, y in counts.items()})}


@pytest.mark.parametrize(
    ("work", "time", "pairs"),
    [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0), (0.5, 0, 0.5), (0.2, 0.3, 0.5)],
)
def test_a_count_that_work_and_time_explain_is_not_named_and_its_parts_are(work: float, time: float, pairs: float) -> None:
    counts = work * RATE * N / 500 + time + pairs * N
    row = named(count=counts / (RATE * N) * COUNT)["count"]
    assert not row.moves
    assert row.form or (row.spearman is not None and abs(row.spearman.value) < 0.4)
    exact = named(count=counts / (RATE * N))["count"]
    assert exact.form or exact.shares is not None or work == 1
    if exact.shares is not None:
        sums = np.array([work * len(N) / 500, (time / RATE / N).sum(), (pairs / RATE).sum()])
        assert (exact.shares.work, exact.shares.time, exact.shares.pairs) == pytest.approx(tuple(sums / sums.sum()), abs=1e-6)


def test_what_the_rate_itself_would_name_is_not_named() -> None:
    """Interrupts of a timer, for each request, fall as the rate rises, and packets of a run rise: neither says anything."""
    rows = named(timer=100 / (RATE * N) * COUNT, packets=10 * COUNT, moves=(RATE / 500) ** 3 * COUNT)
    assert rows["timer"].per_work is not None and rows["timer"].per_work.value < -0.5
    assert {name for name, row in rows.items() if row.moves} == {"moves"}
    assert rows["moves"].elasticity == pytest.approx(3, abs=0.2)


def test_rare_counts_that_are_equal_have_equal_ranks() -> None:
    """A rare count of which nothing goes with the work leaves itself over a + b N: the same for equal counts at an equal N, by
    scipy's ranks of whole numbers that are in the same order."""
    counts = np.random.default_rng(5).integers(1, 4, len(N)) * N
    row = named(rare=counts / (RATE * N))["rare"]
    assert row.shares is not None and row.spearman is not None and row.shares.work == 0
    parts = row.shares.time / (1 / RATE / N).sum() + row.shares.pairs / (1 / RATE).sum() * N
    left = np.unique(np.round(counts / parts, 6), return_inverse=True)[1]
    assert len(set(left)) <= 9
    assert row.spearman.value == pytest.approx(spearmanr(RATE, left).statistic, rel=1e-12)


def test_a_count_that_falls_steeper_than_time_explains_is_named() -> None:
    row = named(falls=(RATE / 500) ** -6 * COUNT)["falls"]
    assert row.moves and row.spearman is not None and row.spearman.value < -0.8


@pytest.mark.parametrize(
    ("values", "form"),
    [
        (RATE * 8, Form.RATE),
        (1 / RATE, Form.RATE),
        (RATE * N * 1e6, Form.WORK),
        (3 / (RATE * N), Form.WORK),
        (RATE * np.exp(CHANCE.normal(0, 0.001, len(N))), Form.RATE),
        (RATE * np.exp(CHANCE.normal(0, 0.02, len(N))), None),
        (RATE**2, None),
    ],
)
def test_the_response_in_another_form_is_not_tested(values: np.ndarray, form: Form | None) -> None:
    (row,) = moving(RUNS, {"value": Given(Measure.LEVEL, values.tolist())})
    assert row.form is form and (row.spearman is None) == (form is not None) and row.moves == (form is None)


def test_levels_are_compared_as_they_are_and_what_does_not_vary_is_not() -> None:
    metrics: dict[str, Given] = {
        "level": Given(Measure.LEVEL, (-RATE + 3).tolist()),
        "constant": Given(Measure.LEVEL, [3.0] * len(N)),
        "absent": Given(Measure.PER_WORK, [None] * len(N)),
        "few": Given(Measure.PER_WORK, [1.0, 2.0, 3.0, 4.0] + [None] * (len(N) - 4)),
    }
    rows = {row.metric: row for row in moving(RUNS, metrics)}
    assert rows["level"].spearman is not None and rows["level"].spearman.value == pytest.approx(-1)
    assert [rows[name].runs for name in ("constant", "absent", "few")] == [len(N), 0, 4]
    assert all(rows[name].spearman is None and rows[name].adjusted is None for name in ("constant", "absent", "few"))


def test_named_come_first_and_then_the_strongest() -> None:
    rows = moving(
        RUNS,
        {
            "noise": Given(Measure.LEVEL, CHANCE.normal(size=len(N)).tolist()),
            "weak": Given(Measure.LEVEL, (RATE + CHANCE.normal(0, 30, len(N))).tolist()),
            "strong": Given(Measure.LEVEL, (RATE + CHANCE.normal(0, 8, len(N))).tolist()),
        },
    )
    assert [row.metric for row in rows] == ["strong", "weak", "noise"]


def test_least_squares_under_bounds_are_those_of_scipy() -> None:
    chance = np.random.default_rng(9)
    at_bounds = 0
    for _ in range(200):
        columns, y = np.exp(chance.normal(size=(12, 3))), np.exp(chance.normal(size=12))
        expected, _ = nnls(columns, y)
        at_bounds += (expected == 0).any()
        assert _bounded(columns, y) == pytest.approx(expected, abs=1e-9)
    assert 20 < at_bounds < 200


def test_correlation_at_equal_n_is_that_of_ranks_in_a_regression_with_a_constant_for_each_n() -> None:
    y = RATE * np.exp(CHANCE.normal(0, 0.03, len(N)))
    ranks = [np.concatenate([rankdata(values[n == N]) for n in SHARES]) for values in (RATE, y)]
    dummies = np.column_stack([ranks[0], *(n == N for n in SHARES)]).astype(float)
    solved, squares, *_ = np.linalg.lstsq(dummies, ranks[1])
    df = len(N) - dummies.shape[1]
    error = np.sqrt(squares[0] / df * np.linalg.inv(dummies.T @ dummies)[0, 0])
    found = _at_equal_n(RATE, y, N)
    assert found is not None and found.p_value == pytest.approx(2 * t.sf(abs(solved[0] / error), df), rel=1e-9)


def test_no_p_value_at_equal_n_is_below_that_of_two_of_all_orders() -> None:
    """Three and four runs in order: (3! 4!) / 2 such as these."""
    n, rate = np.array([1, 1, 1, 2, 2, 2, 2]), np.array([1.0, 2, 3, 11, 12, 13, 14])
    found = _at_equal_n(rate, -(rate**2), n)
    assert found is not None and (found.value, found.p_value) == (-1, pytest.approx(2 / (6 * 24)))


@pytest.mark.parametrize(
    ("y", "form"),
    [
        (10 + np.log(RATE) * 1e-4, Form.GOES_WITH_WORK),
        (5 / (RATE * N) * np.exp(CHANCE.normal(0, 0.001, len(N))), Form.GOES_WITH_TIME),
        (5 / RATE, Form.RATE),
        (10 * COUNT, None),
    ],
)
def test_a_count_of_the_work_or_of_the_time_alone_is_not_tested(y: np.ndarray, form: Form | None) -> None:
    assert named(count=y)["count"].form is form


@pytest.mark.parametrize(("reported", "form"), [(True, Form.RATE), (False, None)])
def test_what_the_workload_reports_and_orders_runs_as_the_rate_does_is_the_rate(reported: bool, form: Form | None) -> None:
    (row,) = moving(RUNS, {"p99": Given(Measure.PER_WORK, (RATE**-0.5 + 1).tolist(), reported)})
    assert row.form is form


def test_rates_of_nothing_are_an_error() -> None:
    with pytest.raises(ValueError, match="a rate of 0"):
        moving(Runs([1.0, 0.0], [1, 1], [1.0, 1.0]), {})
