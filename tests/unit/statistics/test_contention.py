"""Curvature, inflections and their order; the detector of contended runs; a pair faster than alone. On planted data."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest

from twinbed.statistics.anomaly import faster
from twinbed.statistics.contention import AtN, Runs, Share, detect, kinds, lead
from twinbed.statistics.curvature import Inflection, inflections, order, scaled, second_difference
from twinbed.statistics.detector import Detector, Logistic

TESTED = (1, 2, 4, 8, 14, 16, 24, 32, 40)


def test_second_difference_of_a_parabola_is_its_second_derivative_whatever_the_steps() -> None:
    x = [1, 2, 4, 8, 16, 40, 80]
    assert second_difference(x, [3 - 2 * n + 0.75 * n * n for n in x]) == pytest.approx([1.5] * 5, rel=1e-12)


def test_second_difference_of_a_cubic_on_equal_steps_is_exact() -> None:
    x = list(range(10))
    assert second_difference(x, [n**3 for n in x]) == [6 * n for n in x[1:-1]]


@pytest.mark.parametrize("line", [lambda n: 15e6, lambda n: 0.1 * n, lambda n: 1e9 + 3.7 * n, lambda n: 0.0])
def test_second_difference_of_a_straight_line_is_nothing_to_be_scaled(line: Callable[[int], float]) -> None:
    """Whatever its values round to: sevenths are no numbers of base 2."""
    x = [1, 2, 4, 8, 16, 40, 80]
    assert second_difference(x, [line(n) / 7 for n in x]) == [0.0] * 5


def test_a_small_bend_of_large_values_is_one() -> None:
    x = list(range(1, 9))
    assert second_difference(x, [1e6 + 1e-3 * n * n for n in x]) == pytest.approx([2e-3] * 6, rel=1e-5)


def test_scaling_keeps_zero_and_the_greatest_is_one() -> None:
    assert scaled([0.0, -4.0, 2.0]) == [0.0, -1.0, 0.5]
    assert scaled([0.0, 0.0]) == [0.0, 0.0]
    assert scaled([]) == []


def test_inflection_of_a_logistic_curve_is_where_it_is_planted() -> None:
    x = list(range(1, 81))
    curvature = second_difference(x, [1000 / (1 + math.exp((n - 33.5) / 4)) for n in x])
    assert [(point.rising, round(point.at, 6)) for point in inflections(x[1:-1], curvature)] == [(True, 33.5)]


def test_a_rate_that_grows_has_lost_nothing() -> None:
    """100, 123 and 103 % of one pair's: the monotone mean of the first two is above the first, which is no loss of -11 %."""
    runs = Runs([1, 1, 2, 2, 4, 4, 8, 8], [0, 1] * 4, [100, 100, 123, 123, 103, 103, 50, 50], np.zeros((8, 1)))
    assert kinds(runs).lost == pytest.approx({1: 0.0, 2: 0.0, 4: 0.0, 8: 0.5})


def test_signs_within_noise_are_no_inflections() -> None:
    x = list(range(8))
    assert inflections(x, [1.0, 0.8, 0.01, -0.01, 0.01, 0.9, 0.5, 0.2]) == []
    assert inflections(x, [0.0] * 8) == []
    assert inflections(x, [1.0, 0.5, 0.0, 0.0, -0.5, -1.0, -1.0, -1.0]) == [Inflection(2, False)]


def test_order_of_planted_inflections() -> None:
    x = list(range(1, 81))
    at = {"rate": 20.0, "cpu_idle": 35.0, "interrupts": 50.0}
    points = {
        name: inflections(x[1:-1], second_difference(x, [1 / (1 + math.exp((n - place) / 3)) for n in x]))
        for name, place in at.items()
    }
    result = order({**points, "flat": []})
    assert [name for name, _at in result] == ["rate", "cpu_idle", "interrupts"]
    assert [place for _name, place in result] == pytest.approx(list(at.values()), abs=0.01)
    assert order(points, rising=False) == []


def study(seed: int, *, contention: bool, replicates: int = 16) -> Runs:
    """A rate that falls from 12 pairs on by the machine's load; the machine's metrics turn with the load, a little before."""
    chance = np.random.default_rng(seed)
    of_n, replicate, rate, machine = [], [], [], []
    for each in range(replicates):
        for n in TESTED:
            load = max(0.0, n - 12) / 30 if contention else 0.0
            early = max(0.0, n - 6) / 30 if contention else 0.0
            of_n.append(n)
            replicate.append(each)
            rate.append(1000 * math.exp(-1.2 * load + chance.normal(0, 0.02)))
            machine.append(np.array([90 - 60 * early, 5e3 + 4e4 * early, 2 * load, 0]) + chance.normal(0, [3, 2e3, 0.1, 1]))
    return Runs(of_n, replicate, rate, np.array(machine))


def test_a_planted_contention_is_detected_before_the_rate_has_fallen() -> None:
    result = detect(study(1, contention=True))
    assert not set(result.train) & set(result.test)
    assert result.area.value >= 0.95
    assert result.detected >= 0.9
    # At 14 pairs the rate is 8 % lower: contended, and not yet fallen by 10 %.
    assert (result.lead.alarmed, result.lead.fallen) == (14, 16)
    assert result.lead.before == Share(8, 8)
    assert [step.n for step in result.lead.steps] == list(TESTED)


def test_metrics_that_say_nothing_detect_nothing() -> None:
    areas = []
    for seed in range(20):
        runs = study(seed, contention=True)
        noise = np.random.default_rng(seed).normal(size=runs.machine.shape)
        areas.append(detect(Runs(runs.n, runs.replicate, runs.rate, noise)).area.value)
    assert abs(float(np.mean(areas)) - 0.5) < 0.05


def test_a_run_that_disagrees_with_its_number_is_neither() -> None:
    # Means are 1000, 1000 and 900: of N = 4 the run at 960 has not lost 5 %, of N = 2 the run at 940 has.
    runs = Runs([1, 1, 2, 2, 4, 4], [0, 1] * 3, [1000, 1000, 940, 1060, 960, 840], np.zeros((6, 1)))
    result = kinds(runs)
    assert result.lost == pytest.approx({1: 0, 2: 0, 4: 0.1})
    assert result.contended.tolist() == [False] * 5 + [True]
    assert result.free.tolist() == [True, True, False, True, False, False]
    assert result.unclear.tolist() == [False, False, True, False, True, False]
    # Of one replicate's means alone nothing of the other enters.
    assert kinds(runs, of=np.array([True, False] * 3)).lost == pytest.approx({1: 0, 2: 0.05, 4: 0.05})


@pytest.mark.parametrize(("count", "of"), [(0, 4), (3, 4), (7, 8), (8, 8), (40, 100)])
def test_a_share_has_the_exact_interval(count: int, of: int) -> None:
    exact = binomtest(count, of).proportion_ci(0.95, "exact")
    result = Share(count, of).interval()
    assert (result.low, result.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_lead_is_read_off_monotone_shares() -> None:
    shares = [(1, 0.0, 0), (8, 0.03, 1), (14, 0.07, 3), (15, 0.09, 2), (24, 0.3, 4)]
    result = lead([AtN(n, lost, Share(count, 4)) for n, lost, count in shares], 0.05, 0.10)
    # 3 of 4 and 2 of 4 are taken together, 5 of 8, which is most.
    assert (result.alarmed, result.fallen, result.before) == (14, 24, Share(5, 8))
    assert lead([AtN(1, 0.0, Share(0, 4)), AtN(8, 0.2, None)], 0.05, 0.10).before is None
    assert lead([AtN(1, 0.0, Share(2, 4))], 0.05, 0.10).alarmed is None


def test_a_value_below_all_trained_on_is_taken_as_the_least() -> None:
    model = Logistic(np.array([0.0]), np.array([1.0]), 0.0, np.array([1.0]))
    detector = Detector(model, np.array([2.0]), 0.0)
    assert detector.scores(np.array([[4.0], [1.0], [-3.0]])).tolist() == pytest.approx([math.log(4), *[math.log(2)] * 2])
    assert Detector(model, np.array([math.nan]), 0.0).scores(np.array([[-3.0]])).tolist() == [-3]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (study(1, contention=False), "no training run is contended"),
        (study(1, contention=True, replicates=3), "3 replicates"),
        (Runs([1, 2] * 4, [0, 0, 1, 1, 2, 2, 3, 3], [0.0, 1.0] * 4, np.zeros((8, 1))), "the mean rate at N = 1 is 0"),
    ],
)
def test_what_cannot_be_trained_is_an_error(runs: Runs, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        detect(runs)


def test_a_planted_anomaly_is_found_where_it_is() -> None:
    chance = np.random.default_rng(3)
    shares = {1: 1.0, 2: 1.08, 4: 1.05, 8: 1.0, 16: 0.7}
    rates = {n: (500 * share * np.exp(chance.normal(0, 0.01, 10))).tolist() for n, share in shares.items()}
    rows = faster(rates)
    assert [(each.n, each.faster) for each in rows] == [(2, True), (4, True), (8, False), (16, False)]
    assert all(each.interval.low <= shares[each.n] <= each.interval.high for each in rows)
    assert all(each.p_value <= each.adjusted for each in rows)


def test_where_nothing_is_faster_marks_are_wrong_in_at_most_five_percent() -> None:
    chance = np.random.default_rng(4)
    wrong = 0
    for _ in range(400):
        rates = {n: np.exp(chance.normal(6, 0.05, 5)).tolist() for n in (1, 2, 4, 8)}
        wrong += any(each.faster for each in faster(rates))
    assert wrong <= 0.05 * 400 + 3 * (0.05 * 0.95 * 400) ** 0.5


@pytest.mark.parametrize(
    ("rates", "message"),
    [({2: [1.0, 2.0]}, "N = 1"), ({1: [1.0, 2.0], 2: [1.0]}, "1 run at N = 2"), ({1: [0.0, 1.0]}, "a rate of 0")],
)
def test_rates_that_cannot_be_compared_are_an_error(rates: dict[int, list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        faster(rates)
