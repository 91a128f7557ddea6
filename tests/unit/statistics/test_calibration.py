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
    calibrate,
)
from twinbed.statistics.calibration.candidates import share_of_cheap
from twinbed.statistics.calibration.cells import cells
from twinbed.statistics.calibration.equating import equating, logistic_curve
from twinbed.statistics.calibration.intervals import conformal_factor, in_hull, least_groups, quantiles
from twinbed.statistics.calibration.planning import course
from twinbed.statistics.calibration.process import SMOOTHNESS, Points, Shapes, matern, observed
from twinbed.statistics.calibration.trend import JointLaw, joint_law
from twinbed.statistics.nonlinear import NoFitError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/calibration/process.json").read_text())


def shape(deviation: float, *lengths: float) -> Shapes:
    return Shapes(np.array([deviation]), np.array([lengths]), np.array([1.0]), np.array([2.5]), np.array([0.0]))


def at(inputs: np.ndarray, basis: np.ndarray) -> Points:
    return Points(inputs, basis, np.zeros(len(inputs)))


@functools.cache
def made(seed: int = 3, name: str = "joint laws", expensive: int = 10, payloads: int = 20) -> tuple[Calibration, np.ndarray]:
    """And the scaled places of the payloads that the expensive testbed was not measured at."""
    noise = np.random.default_rng(seed)
    of = world(name, noise, payloads)
    one = measured(of, of.cheap, of.cheap_noise, grid(of.payloads), 6, noise)
    two = measured(of, of.expensive, of.expensive_noise, grid(of.payloads[:expensive]), 4, noise)
    found = calibrated(one, two)
    return found.calibration, found.scaled(grid(of.payloads[expensive:]))


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
    process = observed(at(inputs, basis), np.append(values, 0.0), errors, of)
    found = process.at(at(asked, np.zeros((len(asked), 1))))
    assert found.means[0] == pytest.approx(case["mean"], abs=1e-8)
    assert found.covariances[0] == pytest.approx(np.array(case["covariance"]), abs=1e-8)


def test_an_unknown_constant_is_that_of_generalised_least_squares() -> None:
    """Of a process of no deviation: the weighted mean, and the variance of it."""
    values, variances = np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.5, 0.25])
    process = observed(at(np.array([[0.0], [0.5], [1.0]]), np.ones((3, 1))), values, np.diag(variances), shape(0.0, 1.0))
    found = process.at(at(np.array([[0.3]]), np.ones((1, 1))))
    weights = 1 / variances
    assert found.means[0, 0] == pytest.approx(float(weights @ values / weights.sum()), rel=1e-9)
    assert found.covariances[0, 0, 0] == pytest.approx(1 / float(weights.sum()), rel=1e-9)


def test_what_is_left_out_is_what_a_process_without_it_says() -> None:
    random = np.random.default_rng(5)
    inputs, values = random.uniform(size=(9, 2)), random.normal(size=9)
    errors = np.diag(random.uniform(0.01, 0.1, 9)) + 0.02
    basis = np.column_stack([np.ones(9), inputs[:, 0]])
    shapes = Shapes(
        np.array([0.9, 1.1]),
        np.array([[0.3, 0.3], [0.35, 0.3]]),
        np.array([0.3, 0.7]),
        np.array([2.5, 0.5]),
        np.array([0.0, 0.4]),
    )
    curve = random.normal(size=9)
    group = np.zeros(9, dtype=bool)
    group[[2, 6]] = True
    normal, weights = observed(Points(inputs, basis, curve), values, errors, shapes).without(group)
    rest = ~group
    alone = observed(Points(inputs[rest], basis[rest], curve[rest]), values[rest], errors[np.ix_(rest, rest)], shapes)
    asked = Points(inputs[group], basis[group], curve[group])
    said = alone.at(asked, errors[np.ix_(rest, group)], errors[np.ix_(group, group)])
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
    for chance, found in zip((0.025, 0.975), quantiles(means, variances, weights, df, 0.95), strict=True):
        assert weights @ stdtr(df, (found - means) / np.sqrt(variances)) == pytest.approx(chance, abs=1e-9)


def test_beyond_what_was_measured_nothing_is_said() -> None:
    found, places = made()
    assert np.all(found.predict(places + np.array([1.0, 0.0])).refused)
    assert np.all(found.predict(places - np.array([1.0, 0.0])).refused)
    assert not np.all(found.predict(places).refused)


def test_few_groups_have_no_conformal_interval_and_many_have() -> None:
    found, places = made()
    said = found.predict(places)
    assert not found.is_conformal and np.all((said.low <= said.model_low) & (said.high >= said.model_high))
    many, held = made(expensive=20, payloads=25)
    said = many.predict(held)
    assert many.is_conformal and not np.all(said.low == said.model_low)


def test_a_new_run_is_less_sure_than_the_mean() -> None:
    found, places = made()
    mean, run = found.predict(places), found.predict(places, one_run=True)
    assert np.all(run.model_high - run.model_low > mean.model_high - mean.model_low)


def test_a_law_that_breaks_is_doubted() -> None:
    """A step between two payloads, of which the process knows nothing, in most studies."""
    doubted = [made(seed, "a step of 30 %", 20, 30)[0].is_doubted for seed in range(4)]
    believed = [made(seed, "joint laws", 20, 30)[0].is_doubted for seed in range(4)]
    assert sum(doubted) > sum(believed)


def test_the_course_says_what_measuring_would_bring() -> None:
    """The half-width after its first step is that of a process of the same shapes which has these points too."""
    found, places = made(expensive=8, payloads=12)
    by_payload = [places[start : start + len(THREADS)] for start in range(0, len(places), len(THREADS))]
    chosen = course(found, by_payload, found.cheap.inputs, seconds=[1.0] * len(by_payload), runs=4, steps=2)
    assert chosen.now > chosen.steps[0].half_width > chosen.steps[1].half_width
    assert chosen.steps[0].candidate != chosen.steps[1].candidate
    first = by_payload[chosen.steps[0].candidate]
    before = _covariance(found, np.vstack([first, found.cheap.inputs]))
    own = len(first)
    error = np.eye(own) * found.expensive.noise.of_one_run / 4
    after = before[own:, own:] - before[own:, :own] @ np.linalg.solve(before[:own, :own] + error, before[:own, own:])
    half = 1.959963984540054 * float(np.quantile(np.sqrt(np.diagonal(after)), 0.9))
    assert chosen.steps[0].half_width == pytest.approx(half, rel=1e-6)


def _covariance(found: Calibration, places: np.ndarray) -> np.ndarray:
    mixed = found.expensive_at(places)
    return np.asarray(np.tensordot(mixed.weights, mixed.normal.covariances, 1))


def test_one_cell_is_no_calibration() -> None:
    one = cells(np.zeros((2, 1)), np.array([1.0, 1.1]), [0, 1])
    with pytest.raises(ValueError, match="two cells"):
        calibrate(one, one, np.zeros(1, dtype=np.intp))


def test_processes_are_kept_small() -> None:
    """Shapes that weigh nothing are dropped."""
    found, _ = made()
    shapes = found.with_cheap.process.shapes
    assert len(shapes.weights) < 258
    assert shapes.weights.sum() == pytest.approx(1.0)


def test_kernels_are_materns_closed_forms() -> None:
    """Rasmussen and Williams 2006, eq. 4.14 and 4.17, at a distance of 0.6 and a length of 0.4."""
    lengths, asked = np.full((3, 1), 0.4), np.array([[0.6]])
    found = matern(np.array([[0.0]]), asked, lengths, np.array(SMOOTHNESS))[:, 0, 0]
    r = 0.6 / 0.4
    root3, root5 = math.sqrt(3) * r, math.sqrt(5) * r
    expected = [math.exp(-r), (1 + root3) * math.exp(-root3), (1 + root5 + 5 * r**2 / 3) * math.exp(-root5)]
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


def one_input(cheap: np.ndarray, expensive: np.ndarray, every: int = 2, blocks: int = 3, of_blocks: float = 0.0) -> Calibration:
    """Curves in logarithms at places from 0 to 1: the cheap one at all, the other one at each ``every``-th; 1 % of noise."""
    noise = np.random.default_rng(4)
    places = np.linspace(0.0, 1.0, len(cheap))[:, None]
    made = []
    for curve, own in ((cheap, slice(None)), (expensive, slice(None, None, every))):
        at, values = places[own], curve[own]
        drawn = values + of_blocks * noise.normal(size=(blocks, 1)) + 0.01 * noise.normal(size=(blocks, len(at)))
        made.append(cells(np.tile(at, (blocks, 1)), drawn.ravel(), np.repeat(np.arange(blocks), len(at)).tolist()))
    return calibrate(*made, np.arange(len(made[1])))


def test_the_slope_of_logarithms_is_estimated() -> None:
    """ln expensive = 0.5 ln cheap + 1: with a slope of 1 half of the cheap testbed's waves stay in every prediction."""
    at = np.linspace(0.0, 1.0, 25)
    cheap = np.sin(18 * at)
    found = one_input(cheap, 0.5 * cheap + 1)
    assert found.has_cheap and found.slope == pytest.approx(0.5, abs=0.05)
    said = found.predict(at[1::2, None])
    assert said.mean == pytest.approx(0.5 * cheap[1::2] + 1, abs=0.05)


def test_a_cheap_testbed_that_does_not_help_is_not_used() -> None:
    at = np.linspace(0.0, 1.0, 25)
    waves = 0.3 * np.sin(45 * at) * np.cos(17 * at)
    found = one_input(waves, 2 * at)
    assert not found.has_cheap and found.slope is None
    assert found.error is not None and found.with_cheap.error is not None and found.error < found.with_cheap.error
    said = found.predict(at[1::2, None])
    assert said.mean == pytest.approx(2 * at[1::2], abs=0.02)


@pytest.mark.parametrize("levels", [4, 5, 7])
def test_a_cheap_testbed_of_another_shape_is_no_worse_than_straight_lines(levels: int) -> None:
    """A rate that a threshold limits rises slowly on the expensive testbed, and at once on the cheap one (as ns-3 beside
    hardware in SimBricks' DCTCP experiment): nothing that was measured shows what lies beside the left end."""
    at = np.linspace(0.0, 1.0, 13)
    expensive = np.log(9.8 - 6.2 * np.exp(-7 * at))
    cheap = np.log(np.where(at > 0, 10.0, 2.1))
    every = 12 // (levels - 1)
    found = one_input(cheap, expensive, every)
    own, asked = np.arange(13) % every == 0, np.arange(13) % every != 0
    said = found.predict(at[asked, None])
    lines = np.interp(at[asked], found.expensive.inputs[:, 0], found.expensive.means)
    assert own.sum() == levels and 0 < found.share < 0.9
    assert np.mean((said.mean - expensive[asked]) ** 2) < np.mean((lines - expensive[asked]) ** 2)
    assert np.all((said.low <= expensive[asked]) & (expensive[asked] <= said.high)), (
        "how far both lie apart is part of the interval"
    )


def test_shares_are_inverse_to_what_is_missed() -> None:
    """Bates and Granger: 1 / (1 + 0.1**2 / (0.2 / 4)**2) = 0.2, as a gap half as wide leaves a quarter of an error."""
    assert share_of_cheap([np.array([0.1**2])], [np.array([0.2**2])]) == pytest.approx(0.2)
    assert share_of_cheap([np.array([0.2**2])], [np.array([0.1**2])]) == 0.0
    assert share_of_cheap([], []) == 1.0, "nothing was left out, so that nothing speaks against it"


def test_blocks_refuse_no_place_between_others() -> None:
    """A block moves all cells alike: it makes a mean less sure everywhere, and no place farther from what was measured."""
    at = np.linspace(0.0, 1.0, 21)
    found = one_input(np.sin(3 * at), np.sin(3 * at) + at, of_blocks=0.1)
    assert found.expensive.noise.of_blocks > 0.05**2
    assert not found.predict(at[1:-1, None]).refused.any()


def test_a_new_block_is_known_as_badly_as_blocks_are_few() -> None:
    """Three blocks leave two degrees of freedom: Student's 4.30 deviations in place of 1.96."""
    at = np.linspace(0.0, 1.0, 21)
    found = one_input(np.sin(3 * at), np.sin(3 * at) + at, of_blocks=0.1)
    said = found.predict(np.array([[0.5]]), one_run=True)
    deviation = math.sqrt(found.expensive.noise.of_one_run)
    assert float(said.high[0] - said.low[0]) / 2 > 4.0 * deviation


def test_a_few_levels_say_what_their_coverage_is_worth() -> None:
    """Six of six groups held: 0.05 ** (1 / 6) = 0.607, as Clopper and Pearson have it."""
    found, _ = made(expensive=8)
    missed, groups, _ = found.missed
    assert (missed, groups) == (0, 6)
    assert found.shown_coverage == pytest.approx(0.05 ** (1 / 6))
