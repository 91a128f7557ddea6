"""How a capacity is put into words."""

from __future__ import annotations

import pytest

from twinbed.statistics.capacity import Objective, capacity, sentence


@pytest.mark.parametrize(("last", "end"), [(4, "4: not shown"), (5, "nor is 5"), (6, "nor are 5 to 6")])
def test_numbers_beyond_the_third_open_one_are_summed_up(last: int, end: str) -> None:
    samples = {1: [99.0, 100.0, 101.0], **{n: [60.0, 95.0, 130.0] for n in range(2, last + 1)}}
    found = capacity(samples, Objective(bound=90.0, at_most=False))
    assert (found.keeps, found.fails) == (1, None)
    assert f"; {end}" in sentence(found, "pair", "pairs")
    assert ("; nor" in sentence(found, "pair", "pairs")) == (last > 4)
