"""Two clocks seen through delays, with clocks and delays that are planted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from twinbed.statistics.two_clocks import contradictions, level_shifts, lower_hull, straight

SPAN_S = 60.0


def planted(
    offset_s: float, drift: float, *, there_ms: float = 0.1, back_ms: float = 0.1, noise_ms: float = 0.3, n: int = 6000
):
    """Packets 10 ms apart; delays are a least one each way and exponential noise on top."""
    chance = np.random.default_rng(7)
    sent = np.linspace(0, SPAN_S, n)
    there = there_ms / 1e3 + chance.exponential(noise_ms / 1e3, n)
    back = back_ms / 1e3 + chance.exponential(noise_ms / 1e3, n)
    received = sent + there + back
    return sent, there + offset_s + drift * sent, received, back - offset_s - drift * received


@pytest.mark.parametrize("drift", [0.0, 20e-6, -80e-6, 400e-6])
@pytest.mark.parametrize("offset_s", [0.0, 12.5, -3600.0])
def test_planted_clocks_are_found(offset_s: float, drift: float) -> None:
    line = straight(*planted(offset_s, drift))
    assert line is not None
    assert abs(line.offset_s - offset_s) <= line.bound_s
    assert line.drift_low <= drift <= line.drift_high
    assert line.drift == pytest.approx(drift, abs=0.5e-6)
    assert line.bound_s == pytest.approx(0.1e-3, rel=0.1), "half the least round trip"
    assert line.drifts == (drift != 0)


def test_a_path_that_is_longer_one_way_moves_the_offset_within_its_bound() -> None:
    """The middle is off by half the difference of the least delays, and the bound holds it."""
    line = straight(*planted(1.0, 30e-6, there_ms=4.0, back_ms=0.5))
    assert line is not None
    assert line.offset_s - 1.0 == pytest.approx((4.0e-3 - 0.5e-3) / 2, rel=0.02)
    assert abs(line.offset_s - 1.0) < line.bound_s
    assert line.drift == pytest.approx(30e-6, abs=0.5e-6)


def test_noise_on_one_side_alone_does_not_turn_the_line() -> None:
    sent, there, received, back = planted(0.0, 50e-6, noise_ms=0.0)
    there = there + np.random.default_rng(3).exponential(5e-3, len(there)) * (np.arange(len(there)) % 10 > 0)
    line = straight(sent, there, received, back)
    assert line is not None and line.drift == pytest.approx(50e-6, abs=0.1e-6)


def test_it_is_the_answer_of_the_linear_programme() -> None:
    """scipy's solver, with Moon, Skelly and Towsley's programme written down for both directions. Its tolerance is 1e-7 of
    what it is given: microseconds."""
    sent, there, received, back = planted(0.02, 100e-6, n=200)
    there, back = there * 1e6, back * 1e6
    # above + drift t <= there; below + drift t >= -back; the sum of all distances is least.
    left = np.vstack(
        [
            np.column_stack([np.ones(200), np.zeros(200), sent]),
            np.column_stack([np.zeros(200), -np.ones(200), -received]),
        ]
    )
    answer = linprog([-1, 1, 0], A_ub=left, b_ub=np.concatenate([there, back]), bounds=[(None, None)] * 3)
    above, below, drift = answer.x
    line = straight(sent, there, received, back)
    assert line is not None
    assert line.drift == pytest.approx(drift, abs=1e-5)
    assert line.offset_s == pytest.approx((above + below) / 2, abs=1e-5)
    assert line.bound_s == pytest.approx((above - below) / 2, abs=1e-5)
    for which, sign in ((line.drift_low, 1), (line.drift_high, -1)):
        rows = np.column_stack([left[:, 0] + left[:, 1], left[:, 2]])
        extreme = linprog([0, sign], A_ub=rows, b_ub=np.concatenate([there, back]), bounds=[(None, None)] * 2)
        assert which == pytest.approx(extreme.x[1], abs=1e-5)


def test_what_no_straight_line_explains_has_none() -> None:
    sent, there, received, back = planted(0.0, 0.0)
    stepped = np.where(sent > SPAN_S / 2, 1.0, 0.0)
    assert straight(sent, there + stepped, received, back - stepped) is None
    assert straight(sent[:1], there[:1], received[:1], back[:1]) is None


def test_the_hull_is_below_every_point() -> None:
    chance = np.random.default_rng(1)
    x, y = chance.uniform(0, 9, 500), chance.normal(size=500)
    corners_x, corners_y = lower_hull(x, y)
    assert (np.interp(x, corners_x, corners_y) <= y + 1e-12).all()
    assert (np.diff(np.diff(corners_y) / np.diff(corners_x)) > 0).all()
    assert {*zip(corners_x, corners_y, strict=True)} <= {*zip(x, y, strict=True)}


@pytest.mark.parametrize("by", [0.5, -0.5, 0.0002, 3600.0])
@pytest.mark.parametrize("at", [12, 100, 180])
def test_a_step_is_found_where_it_is(at: int, by: float) -> None:
    levels = np.random.default_rng(5).normal(0, 1e-7, 200)
    levels[[3, 60, 150]] += 0.02  # a reading that was interrupted is no step
    levels[at:] += by
    ((index, height),) = level_shifts(levels, 1e-4)
    assert index == at
    assert height == pytest.approx(by, abs=1e-6)


def test_steps_there_and_back_are_two() -> None:
    levels = np.zeros(300)
    levels[100:200] = 2.0
    assert level_shifts(levels, 1e-4) == [(100, 2.0), (200, -2.0)]


def test_a_level_that_stays_has_no_step() -> None:
    assert level_shifts(np.random.default_rng(5).normal(0, 1e-6, 1000), 1e-4) == []
    assert level_shifts(np.zeros(3), 1e-4) == []


@pytest.mark.parametrize("by_s", [0.01, -0.01, 30.0])
def test_bounds_that_contradict_each_other_are_a_step(by_s: float) -> None:
    sent, there, received, back = planted(0.0, 100e-6)
    steps = np.where(sent >= 30.0, by_s, 0.0)
    ((at_s, least_s),) = contradictions(sent, there + steps, received, back - steps, 1.0, 1e-3)
    assert 29.0 <= at_s <= 31.0
    assert np.sign(least_s) == np.sign(by_s) and abs(least_s) <= abs(by_s)
    assert contradictions(sent, there, received, back, 1.0, 1e-3) == []
