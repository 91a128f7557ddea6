"""docs/multifidelity.md in small: intervals from 10 pairs hold the truth as often as stated, without bias."""

from __future__ import annotations

import math

import pytest
from benchmarks.simulated.multifidelity import WORLDS, World, held, plain_held, spread
from scipy import stats

import draws

STUDIES = draws.studies(100, 1000)
ROOM = draws.room(0.05, STUDIES)
pytestmark = pytest.mark.soak
NORMAL = [world for world in WORLDS if "exponential" not in world.about]


@pytest.mark.parametrize("world", NORMAL, ids=lambda world: world.about)
def test_intervals_hold_and_means_have_no_bias(world: World) -> None:
    n = max(10, world.least)
    found = held(world, n, STUDIES, 2 + draws.SEED)
    assert 0.94 - ROOM < found.coverage < 0.97 + ROOM
    # A tenth of the standard error, and what so few studies leave open.
    assert abs(found.bias) < 0.1 + draws.SIGMAS / math.sqrt(STUDIES)
    assert found.decided > 0.935 - ROOM


def test_the_usual_interval_is_too_narrow() -> None:
    """1.96 standard errors with an estimated correlation: about 84, 91 and 94 % at 5, 10 and 20 pairs."""
    for n, stated in ((5, 0.84), (10, 0.91), (20, 0.94)):
        studies = max(400, STUDIES)
        found = held(WORLDS[0], n, studies, 3 + draws.SEED)
        assert found.usual == pytest.approx(stated, abs=0.02 + draws.room(stated, studies))
        assert found.coverage > found.usual or n == 20


def test_quantities_hold_better_with_more_draws() -> None:
    for name, least in (("variance", 0.88), ("share below the 30 % quantile", 0.91)):
        found = spread(name, 40, 200, 1)
        assert found.coverage > least
        assert found.width < 0.8


def test_the_simulation_finds_what_student_promises() -> None:
    count = round(plain_held(10, 1000, 4) * 1000)
    assert stats.binomtest(count, 1000, 0.95).pvalue > 0.001
