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


def test_a_share_is_of_the_best_where_one_alone_is_slower() -> None:
    """Rates of a pair at 1, 2, 4, 8 and 16 pairs of a machine whose CPUs sleep between packets of a lone pair: 615, 5217, 3271,
    1900, 449. No N keeps 90 % of the best, up to which every smaller one does; nothing may be recommended."""
    means = {1: 615.0, 2: 5217.0, 4: 3271.0, 8: 1900.0, 16: 449.0}
    samples = {n: [mean * factor for factor in (0.97, 0.99, 1.0, 1.01, 1.03)] for n, mean in means.items()}
    found = capacity(samples, Objective(bound=0.9, at_most=False, relative=True))
    assert (found.keeps, found.reference) == (None, 2)
    assert found.bound == pytest.approx(0.9 * 5217)
    said = sentence(found, "pair", "pairs")
    assert (
        said.startswith("not even 1 pair")
        and "not monotone: the share is of the best mean, which is at 2 pairs, 8.48 times" in said
    )


def test_a_share_is_of_one_where_none_is_shown_to_be_better() -> None:
    means = {1: 1000.0, 2: 1004.0, 4: 995.0, 8: 700.0}
    samples = {n: [mean * factor for factor in (0.97, 0.99, 1.0, 1.01, 1.03)] for n, mean in means.items()}
    found = capacity(samples, Objective(bound=0.9, at_most=False, relative=True))
    assert (found.keeps, found.fails, found.reference) == (4, 8, 1)
    assert "monotone" not in sentence(found, "pair", "pairs")
