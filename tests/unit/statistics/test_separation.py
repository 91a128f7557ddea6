"""Pairs of runs left out against a slow second reading of the method; areas of single features; dealings of labels."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from twinbed.statistics.permutations import dealings, least_p_within, ways_within
from twinbed.statistics.separation import PairsOut, alone, any_as_large, apart, least_p, runs_needed, separation


def slow(rows: np.ndarray, runs: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """The area and the shares told right, each fold written out: least squares on labels, with a line for each ridge."""
    count = len(labels)
    chances, right = [], [[] for _ in labels]
    for one, other in itertools.product(np.flatnonzero(labels), np.flatnonzero(~labels)):
        fitted = [run for run in range(count) if run not in (one, other)]
        weight = {run: 1 / np.sum(runs == run) for run in range(count)}
        kept = [at for at, run in enumerate(runs) if run in fitted]
        scaled = np.zeros_like(rows)
        for column in range(rows.shape[1]):
            known = [at for at in kept if not math.isnan(rows[at, column])]
            total = sum(weight[runs[at]] for at in known)
            mean = sum(weight[runs[at]] * rows[at, column] for at in known) / total
            variance = sum(weight[runs[at]] * (rows[at, column] - mean) ** 2 for at in known) / total
            for at in range(len(rows)):
                value = rows[at, column]
                scaled[at, column] = 0 if math.isnan(value) or variance < 1e-18 else (value - mean) / math.sqrt(variance)
        targets = [1 / sum(labels) if labels[runs[at]] else -1 / sum(~labels) for at in kept]
        roots = [math.sqrt(weight[runs[at]]) for at in kept]
        left = np.vstack([scaled[kept] * np.array(roots)[:, None], np.eye(rows.shape[1])])
        right_side = np.concatenate([np.array(targets) * roots, np.zeros(rows.shape[1])])
        rule = np.linalg.lstsq(left, right_side, rcond=None)[0]
        scores = scaled @ rule
        of = {run: scores[runs == run] for run in range(count)}
        pairs = [float(a > b) + 0.5 * float(a == b) for a in of[one] for b in of[other]]
        chances.append(np.mean(pairs))
        middle = np.mean([np.mean([of[run].mean() for run in fitted if labels[run] == kind]) for kind in (True, False)])
        right[one].append(np.mean(of[one] > middle))
        right[other].append(np.mean(of[other] < middle))
    return float(np.mean(chances)), np.array([np.mean(each) for each in right])


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5)])
def test_areas_and_accuracy_are_those_of_folds_written_out(sizes: tuple[int, int]) -> None:
    noise = np.random.default_rng(sum(sizes))
    labels = noise.permutation(np.arange(sum(sizes)) < sizes[0])
    runs = np.repeat(np.arange(len(labels)), noise.integers(1, 4, len(labels)))
    rows = noise.normal(size=(len(runs), 4))
    rows[:, 0] += labels[runs]
    rows[:, 3] = runs == 2  # a category of one run alone: there is none of it where that is left out
    rows[noise.random(rows.shape) < 0.1] = np.nan
    folds = PairsOut.of(rows, runs)
    area, right = slow(rows, runs, labels)
    assert folds.areas(labels[None])[0] == pytest.approx(area, abs=1e-12)
    assert folds.correct(labels) == pytest.approx(right, abs=1e-12)


def test_the_area_is_that_of_rules_of_one_run_less_and_not_biased() -> None:
    """One feature of normal noise, shifted by half a deviation: the rule is only its direction, which is right with a chance of
    Phi(d sqrt((n - 1) / 2)) and independent of the pair that it is applied to. The best area is 0.638; scores of several rules
    in one pool, each with its own run left out, give 0.500 here."""
    runs, shift, studies = 4, 0.5, 300
    phi = NormalDist().cdf
    right, best = phi(shift * math.sqrt((runs - 1) / 2)), phi(shift / math.sqrt(2))
    labels = np.arange(2 * runs) < runs
    noise = np.random.default_rng(3)
    areas = [
        float(PairsOut.of((noise.normal(size=2 * runs) + shift * labels)[:, None], np.arange(2 * runs)).areas(labels[None])[0])
        for _ in range(studies)
    ]
    error = float(np.std(areas)) / math.sqrt(studies)
    assert abs(float(np.mean(areas)) - (right * best + (1 - right) * (1 - best))) < 4 * error
    assert 4 * error < best - (right * best + (1 - right) * (1 - best))


def test_kinds_that_change_places_have_the_same_area() -> None:
    rows = np.random.default_rng(1).normal(size=(12, 3))
    labels = np.arange(12) % 2 == 0
    one, other = PairsOut.of(rows, np.arange(12)).areas(np.array([labels, ~labels]))
    assert one == pytest.approx(other, abs=1e-12)


def test_columns_that_do_not_vary_tell_nothing() -> None:
    folds = PairsOut.of(np.full((8, 2), 0.1), np.arange(8))
    assert folds.areas(np.arange(8)[None] < 4)[0] == 0.5
    assert PairsOut.of(np.zeros((8, 0)), np.arange(8)).areas(np.arange(8)[None] < 4)[0] == 0.5


def test_more_runs_than_groups_are_left_out_in_groups() -> None:
    """90 runs in 40 groups: 780 folds, and a shift of 4 deviations is told in all but Phi(-2.83) = 0.2 % of pairs."""
    labels = np.arange(90) % 2 == 0
    rows = np.random.default_rng(2).normal(size=(90, 1)) + 4.0 * labels[:, None]
    folds = PairsOut.of(rows, np.arange(90))
    assert len(folds.folds) == 780
    assert folds.areas(labels[None])[0] > 0.98
    assert folds.correct(labels).mean() > 0.95


def test_dealings_are_all_there_are_each_once() -> None:
    labels = np.array([True, False, True, False, True, False])
    every, whole = dealings(labels, [0] * 6, 1000)
    assert whole and len({each.tobytes() for each in every}) == len(every) == math.comb(6, 3)
    assert every[0].tolist() == labels.tolist()
    within, _ = dealings(labels, [1, 1, 2, 2, 3, 3], 1000)
    assert len(within) == 2**3 == ways_within(labels, [1, 1, 2, 2, 3, 3])
    assert all(each[at] != each[at + 1] for each in within for at in (0, 2, 4))


def test_drawn_dealings_keep_to_blocks() -> None:
    labels = np.arange(60) % 2 == 0
    blocks = [at // 2 for at in range(60)]
    drawn, whole = dealings(labels, blocks, 500)
    assert not whole and len(drawn) == 500 and drawn[0].tolist() == labels.tolist()
    assert (drawn[:, 0::2] != drawn[:, 1::2]).all()
    assert drawn[1:].mean(axis=0).min() > 0.4 and drawn[1:].mean(axis=0).max() < 0.6


@pytest.mark.parametrize(("runs", "p"), [(2, 2 / 6), (3, 2 / 20), (4, 2 / 70)])
def test_the_least_p_is_two_in_all_ways(runs: int, p: float) -> None:
    labels = np.arange(2 * runs) < runs
    assert least_p(labels) == pytest.approx(p)
    rows = np.where(labels, 1.0, 0.0) + 0.001 * np.arange(2 * runs)
    found = separation(PairsOut.of(rows[:, None], np.arange(2 * runs)), labels)
    assert found.area == 1.0
    assert found.p_value == pytest.approx(p)


def test_the_runs_that_are_needed() -> None:
    """2/70 and 2/64 are the first of their kind below 0.05: 4 against 4 freely, 6 blocks within them."""
    assert (runs_needed(0.05, within_blocks=False), runs_needed(0.05, within_blocks=True)) == (4, 6)
    assert least_p_within(np.array([True, False, True]), [0, 0, 0]) == pytest.approx(1 / 3)


def test_the_interval_holds_one_half_wherever_the_area_is_in_the_middle_of_dealt_ones() -> None:
    labels = np.arange(10) < 5
    for seed in range(40):
        folds = PairsOut.of(np.random.default_rng(seed).normal(size=(10, 2)), np.arange(10))
        dealt, _ = dealings(labels, [0] * 10, 1000)
        areas, found = folds.areas(dealt), separation(folds, labels)
        beyond = int(0.025 * len(areas))
        low, high = np.sort(areas)[[beyond, -1 - beyond]]
        holds = found.interval.low <= 0.5 + 1e-9 and found.interval.high >= 0.5 - 1e-9
        assert holds or not low - 1e-9 <= found.area <= high + 1e-9


def test_a_feature_alone_is_mann_and_whitneys_share() -> None:
    """By hand: of 3 x 3 pairs (1, 4, 6) against (2, 3, 5) the first is the larger in 0 + 2 + 3 = 5, up; 4 down."""
    labels = np.array([True, True, True, False, False, False])
    every, _ = dealings(labels, [0] * 6, 1000)
    assert alone([1.0, 4.0, 6.0, 2.0, 3.0, 5.0], every)[0] == pytest.approx(5 / 9)
    # Both orders of (4, 5, 6) against (1, 2, 3) are the largest: 2 of 20 dealings.
    areas = alone([4.0, 5.0, 6.0, 1.0, 2.0, 3.0], every)
    assert areas[0] == 1.0
    assert any_as_large(areas[None]) == pytest.approx([0.1])
    assert alone([2.0, 2.0, 2.0, 2.0, None, 2.0], every)[0] == 0.5


def test_texts_alone_are_in_their_best_order() -> None:
    """By hand: a a b against b c c in the order c, b, a: all pairs but that of the two b, which is half: 8.5 of 9."""
    labels = np.array([True, True, True, False, False, False])
    every, _ = dealings(labels, [0] * 6, 1000)
    assert alone(["a", "a", "b", "b", "c", "c"], every)[0] == pytest.approx(8.5 / 9)
    assert alone(["x", None, "x", "y", "y", "y"], every)[0] == 1.0


def test_several_features_are_corrected_by_the_largest() -> None:
    """By hand over four dealings: the largest areas are 0.9, 0.9, 0.7, 0.6; at least 0.9 are two of them, at least 0.6 all."""
    areas = np.array([[0.9, 0.5, 0.7, 0.6], [0.6, 0.9, 0.5, 0.5]])
    assert any_as_large(areas) == pytest.approx([0.5, 1.0])


def test_how_far_apart() -> None:
    """By hand: means 2 and 5, variances 1 and 1 of two values each."""
    labels = np.array([True, True, False, False])
    assert apart([1.0, 3.0, 4.0, 6.0], labels) == pytest.approx(3.0)
    assert (apart([1.0, 1.0, 2.0, 2.0], labels), apart([1.0, 1.0, 1.0, 1.0], labels)) == (math.inf, 0.0)
    assert apart(["a", "a", "b", "b"], labels) == 0.0
