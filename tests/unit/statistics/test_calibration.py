"""Processes against scikit-learn, what is left out against making it anew without, variances against textbooks' sums."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.simulated.calibrated import THREADS, calibrated, grid, measured, world
from scipy.special import stdtr

from twinbed.statistics.calibration.area import area, difference_of_areas
from twinbed.statistics.calibration.calibration import (
    Calibration,
    _quantiles,
    calibrate,
    conformal_factor,
    in_hull,
    least_groups,
)
from twinbed.statistics.calibration.cells import cells
from twinbed.statistics.calibration.equating import equating, logistic_curve
from twinbed.statistics.calibration.joint_law import JointLaw, joint_law
from twinbed.statistics.calibration.planning import course
from twinbed.statistics.calibration.process import Process, Shapes, observed
from twinbed.statistics.nonlinear import NoFitError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/calibration/process.json").read_text())


def shape(deviation: float, *lengths: float) -> Shapes:
    return Shapes(np.array([deviation]), np.array([lengths]), np.array([1.0]))


@functools.cache
def made(seed: int = 3, name: str = "joint laws", dear: int = 10, payloads: int = 20) -> tuple[Calibration, np.ndarray]:
    """And the scaled places of the payloads that the dear testbed was not measured at."""
    noise = np.random.default_rng(seed)
    of = world(name, noise, payloads)
    one = measured(of, of.cheap, of.cheap_noise, grid(of.payloads), 6, noise)
    two = measured(of, of.dear, of.dear_noise, grid(of.payloads[:dear]), 4, noise)
    found = calibrated(one, two)
    return found.calibration, found.scaled(grid(of.payloads[dear:]))


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: f"deviation {case['deviation']}")
def test_a_process_is_scikit_learns(case: dict[str, object]) -> None:
    """Scikit-learn's mean is known to be 0, so that the trend's amount is given a point of its own."""
    points, values, asked = (np.array(GOLDEN[name]) for name in ("points", "values", "asked"))
    far = np.array([[1e6, 1e6]])
    inputs = np.vstack([points, far])
    # A value far from all others, the only one whose basis is not 0, fixes the amount and nothing else.
    basis = np.append(np.zeros(len(points)), 1.0)[:, None]
    errors = np.diag(np.append(GOLDEN["errors"], 1.0))
    of = shape(float(str(case["deviation"])), *map(float, case["lengths"]))  # type: ignore[call-overload]
    process = observed(inputs, np.append(values, 0.0), basis, errors, of)
    found = process.at(asked, np.zeros((len(asked), 1)))
    assert found.means[0] == pytest.approx(case["mean"], abs=1e-8)
    assert found.covariances[0] == pytest.approx(np.array(case["covariance"]), abs=1e-8)


def test_an_unknown_constant_is_that_of_generalised_least_squares() -> None:
    """Of a process of no deviation: the weighted mean, and the variance of it."""
    values, variances = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.5, 0.25])
    process = observed(np.array([[0.0], [0.5], [1.0]]), values, np.ones((3, 1)), np.diag(variances), shape(0.0, 1.0))
    found = process.at(np.array([[0.3]]), np.ones((1, 1)))
    weights = 1 / variances
    assert found.means[0, 0] == pytest.approx(float(weights @ values / weights.sum()), rel=1e-9)
    assert found.covariances[0, 0, 0] == pytest.approx(1 / float(weights.sum()), rel=1e-9)


def test_what_is_left_out_is_what_a_process_without_it_says() -> None:
    random = np.random.default_rng(5)
    inputs, values = random.uniform(size=(9, 2)), random.normal(size=9)
    errors = np.diag(random.uniform(0.01, 0.1, 9)) + 0.02
    basis = np.column_stack([np.ones(9), inputs[:, 0]])
    shapes = Shapes(np.array([0.9, 1.1]), np.array([[0.3, 0.3], [0.35, 0.3]]), np.array([0.3, 0.7]))
    group = np.zeros(9, dtype=bool)
    group[[2, 6]] = True
    normal, weights = observed(inputs, values, basis, errors, shapes).without(group)
    rest = ~group
    alone = observed(inputs[rest], values[rest], basis[rest], errors[np.ix_(rest, rest)], shapes)
    said = alone.at(inputs[group], basis[group], errors[np.ix_(rest, group)], errors[np.ix_(group, group)])
    assert weights == pytest.approx(alone.shapes.weights, rel=1e-8)
    assert normal.means == pytest.approx(said.means, rel=1e-8)
    assert normal.covariances == pytest.approx(said.covariances, rel=1e-6)


def test_variances_are_those_of_a_balanced_analysis_of_variance() -> None:
    """Mean squares of cells and blocks: noise is the remainder's, blocks' is what theirs has beyond, by the number of cells."""
    random = np.random.default_rng(8)
    count, blocks = 6, 4
    table = random.normal(size=(count, blocks)) + 3 * random.normal(size=blocks) + np.arange(count)[:, None]
    inputs = np.repeat(np.arange(count, dtype=float), blocks)[:, None]
    found = cells(inputs, table.ravel(), list(range(blocks)) * count)
    of_blocks = count * float(np.sum((table.mean(axis=0) - table.mean()) ** 2)) / (blocks - 1)
    left = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    of_runs = float(np.sum(left**2)) / ((count - 1) * (blocks - 1))
    assert found.noise.of_runs == pytest.approx(of_runs, rel=1e-9)
    assert found.noise.of_blocks == pytest.approx((of_blocks - of_runs) / count, rel=1e-9)
    assert (found.noise.runs_df, found.noise.blocks_df) == ((count - 1) * (blocks - 1), blocks - 1)
    assert found.covariance[0, 1] == pytest.approx(found.noise.of_blocks / blocks)
    assert found.covariance[2, 2] == pytest.approx((found.noise.of_blocks + of_runs) / blocks)
    assert found.means == pytest.approx(table.mean(axis=1))


def test_noise_that_nothing_tells_of_is_refused() -> None:
    with pytest.raises(ValueError, match="no cell has two runs"):
        cells(np.arange(3.0)[:, None], np.array([1.0, 2.0, 3.0]), [0, 0, 0])
    with pytest.raises(ValueError, match="do not vary"):
        cells(np.array([[0.0], [0.0]]), np.array([1.0, 1.0]), [0, 1])


def test_the_law_is_hockneys_for_one_client() -> None:
    """q = 1: a request takes 1/rate and the payload's time on the line, to 15 digits."""
    law = JointLaw(2000.0, 0.1, 0.01, 1e9, 1.0)
    for payload in (1.0, 1500.0, 1e6):
        seconds = math.exp(-float(law.log_rate(np.array([payload]), np.array([1.0]))[0]))
        assert seconds == pytest.approx(1 / 2000 + 8 * payload / 1e9, rel=1e-14)
    # Gunther's law, where the line is as good as free: 4 * 2000 / (1 + 0.1 * 3 + 0.01 * 4 * 3).
    free = JointLaw(2000.0, 0.1, 0.01, 1e15, 1.0)
    assert math.exp(float(free.log_rate(np.array([1.0]), np.array([4.0]))[0])) == pytest.approx(8000 / 1.42, rel=1e-9)


def test_the_law_is_found_again() -> None:
    law = JointLaw(2500.0, 0.2, 0.015, 8e8, 2.0)
    places = grid(np.linspace(math.log(500), math.log(2**24), 12))
    payload, threads = np.exp(places[:, 0]), places[:, 1]
    found = joint_law(payload, threads, law.log_rate(payload, threads))
    assert found is not None
    got, wanted = ((each.rate, each.contention, each.coherence, each.line, each.bend) for each in (found, law))
    assert got == pytest.approx(wanted, rel=1e-3)
    assert joint_law(payload[:4], threads[:4], np.zeros(4)) is None, "one payload alone"


def test_ranks_of_conformal_intervals() -> None:
    assert (least_groups(0.95), least_groups(0.9)) == (19, 9)
    assert conformal_factor([float(each) for each in range(1, 20)], 0.95) == 19.0
    assert conformal_factor([float(each) for each in range(1, 19)], 0.95) is None
    assert conformal_factor([float(each) for each in range(1, 40)], 0.95) == 38.0


def test_hulls_hold_their_corners_and_not_the_box() -> None:
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    asked = np.array([[0.0, 0.0], [0.3, 0.3], [0.6, 0.6], [1.0, 1.0], [0.5, 0.5], [2.0, 0.0]])
    assert in_hull(triangle, asked).tolist() == [True, True, False, False, True, False]


def test_areas_are_exact() -> None:
    """Half of the width 0.2 apart and falling to 0, half crossing 0 in its middle: by triangles."""
    at = np.array([0.0, 1.0, 2.0])
    found = area(at, np.array([[0.2], [0.0], [0.4]]))
    assert found.value == pytest.approx((0.1 + 0.2) / 2)
    crossing = area(at[:2], np.array([[0.1], [-0.1]]))
    assert crossing.value == pytest.approx(0.05) and crossing.interval is None
    steady = difference_of_areas(np.arange(6.0), np.full((6, 2), 0.3), np.full((6, 2), -0.1))
    assert steady.value == pytest.approx(0.2)
    assert steady.interval is not None and steady.interval.low == pytest.approx(0.2) == steady.interval.high


def test_the_logistic_and_the_line_are_found_again() -> None:
    at = np.linspace(6, 16, 30)
    rates = 4000 / (1 + np.exp((at - 10.5) / 1.2))
    curve = logistic_curve(at, rates + 1e-6 * np.cos(7 * at))
    assert [
        math.exp(curve.curve.parameters[0]),
        curve.curve.parameters[1],
        math.exp(curve.curve.parameters[2]),
    ] == pytest.approx([4000, 10.5, 1.2], rel=1e-6)
    rate, low, high = curve.at(at, 0.95)
    assert np.all((low < rate) & (rate < high))
    with pytest.raises(NoFitError):
        logistic_curve(at[:2], rates[:2])
    line = equating(np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 7.0]))
    assert (line.offset, line.factor, line.error) == pytest.approx((1.0, 2.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("shapes", [1, 7, 30])
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0])
def test_quantiles_of_mixtures_have_their_chance_on_each_side(shapes: int, spread: float) -> None:
    """By the distribution function itself. Narrow components among wide ones are where Newton's steps lead astray."""
    random = np.random.default_rng(shapes)
    means, variances = random.normal(size=(shapes, 12)), np.exp(spread * random.normal(size=(shapes, 12)))
    weights, df = random.dirichlet(np.ones(shapes)), 1 + np.exp(random.normal(size=(shapes, 12)))
    for chance, found in zip((0.025, 0.975), _quantiles(means, variances, weights, df, 0.95), strict=True):
        assert weights @ stdtr(df, (found - means) / np.sqrt(variances)) == pytest.approx(chance, abs=1e-9)


def test_beyond_what_was_measured_nothing_is_said() -> None:
    found, places = made()
    assert np.all(found.predict(places + np.array([1.0, 0.0])).refused)
    assert np.all(found.predict(places - np.array([1.0, 0.0])).refused)
    assert not np.all(found.predict(places).refused)


def test_few_groups_have_no_conformal_interval_and_many_have() -> None:
    found, places = made()
    said = found.predict(places)
    assert not found.is_conformal and np.all(said.low == said.model_low)
    many, held = made(dear=20, payloads=25)
    said = many.predict(held)
    assert many.is_conformal and not np.all(said.low == said.model_low)


def test_a_new_run_is_less_sure_than_the_mean() -> None:
    found, places = made()
    mean, run = found.predict(places), found.predict(places, one_run=True)
    assert np.all(run.model_high - run.model_low > mean.model_high - mean.model_low)


def test_a_law_that_breaks_is_doubted() -> None:
    """A step between two payloads, of which the process knows nothing, in most studies."""
    doubted = [made(seed, "a step of 30 %", 20, 30)[0].is_doubted for seed in range(8)]
    believed = [made(seed, "joint laws", 20, 30)[0].is_doubted for seed in range(8)]
    assert sum(doubted) > sum(believed)


def test_the_course_says_what_measuring_would_bring() -> None:
    """The half-width after its first step is that of a process of the same shapes which has these points too."""
    found, places = made(dear=8, payloads=12)
    by_payload = [places[start : start + len(THREADS)] for start in range(0, len(places), len(THREADS))]
    chosen = course(found, by_payload, found.cheap.inputs, seconds=[1.0] * len(by_payload), runs=4, steps=2)
    assert chosen.now > chosen.steps[0].half_width > chosen.steps[1].half_width
    assert chosen.steps[0].candidate != chosen.steps[1].candidate
    first = by_payload[chosen.steps[0].candidate]
    before = _covariance(found, np.vstack([first, found.cheap.inputs]))
    own = len(first)
    error = np.eye(own) * found.dear.noise.of_one_run / 4
    after = before[own:, own:] - before[own:, :own] @ np.linalg.solve(before[:own, :own] + error, before[:own, own:])
    half = 1.959963984540054 * float(np.quantile(np.sqrt(np.diagonal(after)), 0.9))
    assert chosen.steps[0].half_width == pytest.approx(half, rel=1e-6)


def _covariance(found: Calibration, places: np.ndarray) -> np.ndarray:
    _, covariances = found.dear_at(places)
    return np.asarray(np.tensordot(found.delta.shapes.weights, covariances, 1))


def test_one_cell_is_no_calibration() -> None:
    one = cells(np.zeros((2, 1)), np.array([1.0, 1.1]), [0, 1])
    with pytest.raises(ValueError, match="two cells"):
        calibrate(one, one, np.zeros(1, dtype=np.intp))


def test_processes_are_kept_small() -> None:
    """Shapes that weigh nothing are dropped."""
    found, _ = made()
    assert isinstance(found.delta, Process) and len(found.delta.shapes.weights) < 258
    assert found.delta.shapes.weights.sum() == pytest.approx(1.0)
