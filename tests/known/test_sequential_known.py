"""Levels of looks against rpact and printed tables; the size of the whole procedure by simulation."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri, stdtr

from twinbed.design import interim_blocks
from twinbed.model.interim import UntilDecided
from twinbed.statistics.sequential import information, interim_levels, overall_level, spent

GOLDEN = Path(__file__).parents[1] / "golden/sequential/pocock.tsv"
LINES = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
SIXTHS = tuple(look / 6 for look in range(1, 7))


@pytest.mark.parametrize(
    "row", list(csv.DictReader(LINES, delimiter="\t")), ids=lambda row: f"{row['alpha']}-{row['levels'][:8]}"
)
def test_levels_are_those_of_rpact(row: dict[str, str]) -> None:
    found = interim_levels(float(row["alpha"]), [float(time) for time in row["information"].split()])
    assert found == pytest.approx([float(level) for level in row["levels"].split()], rel=2e-4)


def test_bounds_are_those_that_are_printed() -> None:
    """Lan and DeMets's function of Pocock's type, five equal looks, two-sided 5 %: Reboussin et al. (2000, Control. Clin.
    Trials 21:190), 2.4380, 2.4268, 2.4101, 2.3966, 2.3859."""
    bounds = [-float(ndtri(level)) for level in interim_levels(0.025, [0.2, 0.4, 0.6, 0.8, 1.0])]
    assert bounds == pytest.approx([2.4380, 2.4268, 2.4101, 2.3966, 2.3859], abs=1e-4)


def test_one_look_is_an_ordinary_test() -> None:
    assert interim_levels(0.05, [1.0]) == pytest.approx((0.05,), rel=1e-9)
    for p_value in (1e-6, 0.01, 0.05, 0.3):
        assert overall_level(p_value, [1.0]) == pytest.approx(p_value, rel=1e-3)


def test_everything_is_spent_at_the_end() -> None:
    assert spent(0.05, 1.0) == pytest.approx(0.05)
    assert spent(0.05, 0.5) == pytest.approx(0.05 * math.log((math.e + 1) / 2))


@pytest.mark.parametrize("looks", range(1, 7))
@pytest.mark.parametrize("alpha", [0.05, 0.025, 0.05 / 24])
def test_the_overall_level_of_a_looks_level_is_alpha(looks: int, alpha: float) -> None:
    times = SIXTHS[:looks]
    assert overall_level(interim_levels(alpha, times)[-1], times) == pytest.approx(alpha, rel=1e-3)


def test_smaller_p_values_never_get_larger_levels() -> None:
    found = [overall_level(p_value, SIXTHS) for p_value in np.logspace(-14, 0, 200)]
    assert found == sorted(found)
    assert all(level >= p_value for level, p_value in zip(found, np.logspace(-14, 0, 200), strict=True) if p_value > 1e-12)
    assert (found[0], found[-1]) == (1e-12, 1.0)


@pytest.mark.parametrize("times", [(), (0.0, 1.0), (0.5, 0.5), (0.5, 0.2)])
def test_information_that_does_not_increase_is_refused(times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="increase"):
        interim_levels(0.05, times)


def test_information_is_all_at_the_end_and_nothing_with_three() -> None:
    assert information(30, 30) == 1.0
    assert information(3, 30) == 0.0
    assert information(4, 30) > 0


@pytest.mark.parametrize(("least", "most"), [(5, 30), (5, 10), (4, 8)])
@pytest.mark.parametrize("spreads", [(0.02, 0.02), (0.02, 0.10), (0.002, 0.02)])
def test_at_the_margins_edge_no_look_of_all_is_wrong_more_often_than_stated(
    least: int, most: int, spreads: tuple[float, float]
) -> None:
    """Welch's tests of few values, which the recursion takes as normal, with the first rejection ending the study."""
    draws, alpha, edge = 20_000, 0.05, math.log(1.1)
    noise = np.random.default_rng(least * 1000 + most)
    one, two = edge + noise.normal(0, spreads[0], (draws, most)), noise.normal(0, spreads[1], (draws, most))
    looks = interim_blocks(UntilDecided(least=least, most=most))
    times = [information(blocks, most) for blocks in looks]
    equivalent, different = np.zeros(draws, bool), np.zeros(draws, bool)
    for blocks, level, half in zip(looks, interim_levels(alpha, times), interim_levels(alpha / 2, times), strict=True):
        a, b = one[:, :blocks].var(1, ddof=1) / blocks, two[:, :blocks].var(1, ddof=1) / blocks
        error, df = np.sqrt(a + b), (a + b) ** 2 * (blocks - 1) / (a**2 + b**2)
        found = one[:, :blocks].mean(1) - two[:, :blocks].mean(1)
        inside = np.maximum(stdtr(df, -(found + edge) / error), stdtr(df, (found - edge) / error))
        outside = np.minimum(stdtr(df, -(found - edge) / error), stdtr(df, (found + edge) / error))
        equivalent |= inside <= level
        different |= outside <= half
    tolerance = 3 * math.sqrt(alpha * (1 - alpha) / draws)
    assert equivalent.mean() <= alpha + tolerance
    assert different.mean() <= alpha + tolerance
    assert equivalent.mean() > 0.02, "alpha is used"
