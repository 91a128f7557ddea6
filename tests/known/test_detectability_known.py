"""How often ``detectability`` is wrong, and what a planted shift gives: benchmarks/detectability.py in small, seeded."""

from __future__ import annotations

import pytest
from benchmarks.simulated.detected import best, outcome, told_of_states


@pytest.mark.parametrize(("runs", "features", "paired"), [(5, 3, False), (6, 3, True)])
def test_equal_testbeds_have_an_interval_that_holds_one_half(runs: int, features: int, paired: bool) -> None:
    """At least 94 % are promised; of 100 at 95 % fewer than 88 come once in 500 tries, and the seeds make each try the same."""
    of = outcome(runs, features, 0.0, 100, paired=paired)
    assert of.holds >= 0.88
    assert of.shown <= 0.12
    # The mean of unbiased areas: four standard errors.
    assert of.area == pytest.approx(0.5, abs=4 * of.deviation / 10)


@pytest.mark.parametrize("shift", [1.5, 3.0])
def test_a_planted_shift_gives_its_area(shift: float) -> None:
    """Phi(d / sqrt 2) within 0.03, as the mean over studies."""
    assert outcome(12, 1, shift, 40).area == pytest.approx(best(shift), abs=0.03)


@pytest.mark.parametrize("apart_s", [None, 0.0, 1e7])
def test_a_state_that_lasts_is_told_with_a_caution(apart_s: float | None) -> None:
    """Equal testbeds, of which each has a slow state: told in most of ten studies, never without a caution."""
    told, alone = told_of_states(10, 5, 0.95, 10, apart_s=apart_s)
    assert told >= 0.5 and alone == 0
