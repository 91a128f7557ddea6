"""The drift of runs, held to its definition over all pairs, in exact arithmetic."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from statistics import median

import pytest

from twinbed.statistics import trend as module
from twinbed.statistics.trend import trend


def cells(seed: int, sizes: list[int]) -> list[list[tuple[float, float]]]:
    """With ties, out of order, and with gaps."""
    noise = random.Random(seed)
    return [[(float(at), float(noise.randrange(6))) for at in noise.sample(range(3 * size), size)] for size in sizes]


def by_definition(of: list[list[tuple[float, float]]]) -> tuple[int, float]:
    pairs = [pair for cell in of for pair in itertools.combinations(sorted(cell), 2)]
    rising = sum((two[1] > one[1]) - (two[1] < one[1]) for one, two in pairs)
    return rising, float(median(Fraction(two[1] - one[1]) / Fraction(two[0] - one[0]) for one, two in pairs))


@pytest.mark.parametrize("seed", range(8))
def test_all_pairs(seed: int) -> None:
    of = cells(seed, [2, 9, 30, 1])
    found = trend(of)
    assert found
    rising, slope = by_definition(of)
    assert (found.pairs, found.rising) == (1 + 36 + 435, rising)
    assert found.slope == pytest.approx(slope, abs=1e-15)


def test_so_many_pairs_that_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of values that rise by exactly 0.5 a step each pair has that slope; of noise around it the median is near."""
    exact = trend([[(float(at), 0.5 * at) for at in range(40)]])
    noise = random.Random(1)
    of = [[(float(at), 0.5 * at + noise.gauss(0, 5)) for at in range(200)] for _ in range(3)]
    whole = trend(of)
    monkeypatch.setattr(module, "MOST_PAIRS", 100)
    monkeypatch.setattr(module, "DRAWN_PAIRS", 50_000)
    assert trend([[(float(at), 0.5 * at) for at in range(40)]]) == exact
    drawn = trend(of)
    assert whole
    assert drawn
    assert (drawn.pairs, drawn.rising, drawn.p_value) == (whole.pairs, whole.rising, whole.p_value)
    assert drawn.slope == pytest.approx(whole.slope, rel=0.01)
