"""The pooled ratio of cells, against scipy, and its coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from twinbed.statistics.ratio import Cell, pooled_ratio

NOISE = np.random.default_rng(7)
CELLS = [Cell(NOISE.normal(each, 0.1, 6).tolist(), NOISE.normal(0, 0.3, 6).tolist()) for each in (0.0, 0.5, -0.2)]


def test_one_cell_is_its_own_comparison() -> None:
    for paired, test in ((True, stats.ttest_rel), (False, lambda x, y: stats.ttest_ind(x, y, equal_var=False))):
        found = pooled_ratio(CELLS[:1], 0.9, paired=paired)
        assert found is not None and found.p_agree is None
        expected = test(CELLS[0].own, CELLS[0].reference).confidence_interval(0.9)
        assert (math.log(found.interval.low), math.log(found.interval.high)) == pytest.approx(tuple(expected))


def test_it_is_the_geometric_mean_of_the_cells_ratios() -> None:
    ratios = [stats.gmean(np.exp(cell.own)) / stats.gmean(np.exp(cell.reference)) for cell in CELLS]
    for paired in (True, False):
        found = pooled_ratio(CELLS, 0.9, paired=paired)
        assert found is not None and found.ratio == pytest.approx(stats.gmean(ratios))


def test_pairs_are_averaged_within_blocks() -> None:
    found = pooled_ratio(CELLS, 0.95, paired=True)
    assert found is not None
    blocks = np.mean([np.subtract(cell.own, cell.reference) for cell in CELLS], axis=0)
    expected = stats.ttest_1samp(blocks, 0.0).confidence_interval(0.95)
    assert (math.log(found.interval.low), math.log(found.interval.high)) == pytest.approx(tuple(expected))


def test_agreement_is_welchs_analysis_of_variance_of_differences() -> None:
    found = pooled_ratio(CELLS, 0.95, paired=True)
    assert found is not None
    samples = [np.subtract(cell.own, cell.reference) for cell in CELLS]
    assert found.p_agree == pytest.approx(stats.f_oneway(*samples, equal_var=False).pvalue)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_intervals_cover_whatever_blocks_share(paired: bool, correlation: float) -> None:
    """1,000 studies of 3 cells and 5 blocks that shift all cells: 90 % intervals hold the truth in at least 87 % (three
    standard errors); those of independent runs err on the safe side."""
    noise = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        shift = noise.normal(0, math.sqrt(correlation), 5)
        own = math.sqrt(1 - correlation)
        cells = [Cell(*(0.1 * (shift + noise.normal(0, own, 5)) for _ in range(2))) for _ in range(3)]
        found = pooled_ratio(cells, 0.9, paired=paired)
        assert found is not None
        held += found.interval.low <= 1 <= found.interval.high
    assert held >= 870
    assert not paired or held <= 930


def test_without_cells_or_noise_there_is_none() -> None:
    assert pooled_ratio([], 0.9, paired=False) is None
    assert pooled_ratio([Cell([0.0, 0.0], [1.0, 1.0])], 0.9, paired=True) is None
