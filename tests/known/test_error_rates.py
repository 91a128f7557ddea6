"""The stated error rates, by simulation: seeded, with the tolerance that a binomial count of this size needs.

The planted truth is known, so that every verdict is right or wrong. The tolerance is four standard errors of a share at the
stated rate. A correct program exceeds it once in 30,000 tries, and the seed makes every try the same. Ratios and spreads are
tested on arrays of studies, whose p-values and intervals test_coverage.py holds against the program's.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from benchmarks.simulated.arrays import deviation_ratio_interval, equal_deviations, ratio_p_values

from synthetic_results import planted_response, write_study
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.result import Verdict
from twinbed.results.extract import extract
from twinbed.statistics.multiplicity import holm
from twinbed.statistics.nominal import nominal_test
from twinbed.statistics.order import block_effect, neighbours
from twinbed.statistics.ordinal import ordinal_test
from twinbed.statistics.trend import trend
from twinbed.workloads.planted import planted

ALPHA, MARGIN, DRAWS = 0.05, 0.10, 4000
TOLERANCE = 4 * math.sqrt(ALPHA * (1 - ALPHA) / DRAWS)


def shares(
    ratio: float, spreads: tuple[float, float], sizes: tuple[int, int] = (5, 5), *, normal: bool = False
) -> dict[str, float]:
    """Share of draws called equivalent and different. The planted ratio is of medians, or of means for ``normal`` noise."""
    noise = np.random.default_rng(round(ratio * 1000) + round(spreads[0] * 1e6) + sizes[0])
    if normal:
        one, two = (noise.normal(1, spread, (DRAWS, size)) for spread, size in zip(spreads, sizes, strict=True))
    else:
        one, two = (noise.lognormal(0, spread, (DRAWS, size)) for spread, size in zip(spreads, sizes, strict=True))
    inside, outside = ratio_p_values(ratio * one, two, MARGIN)
    return {"equivalent": float((inside <= ALPHA).mean()), "different": float((outside <= ALPHA).mean())}


@pytest.mark.parametrize("spreads", [(0.02, 0.02), (0.02, 0.10), (0.10, 0.10)])
@pytest.mark.parametrize("edge", [1 + MARGIN, 1 / (1 + MARGIN)])
def test_on_the_margin_no_verdict_is_wrong_more_often_than_stated(edge: float, spreads: tuple[float, float]) -> None:
    """The worst place: the truth is exactly on the edge, so that each of the two verdicts would be wrong."""
    found = shares(edge, spreads)
    assert found["equivalent"] <= ALPHA + TOLERANCE
    assert found["different"] <= ALPHA + TOLERANCE


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (2, 5), (20, 20)])
def test_unequal_numbers_of_replicates(sizes: tuple[int, int]) -> None:
    found = shares(1 + MARGIN, (0.05, 0.05), sizes)
    # Welch's approximation is worst for two values: 1 % is granted on top, and docs/statistics.md says so.
    allowed = ALPHA + TOLERANCE + (0.01 if min(sizes) < 3 else 0)
    assert found["equivalent"] <= allowed
    assert found["different"] <= allowed


def test_normal_noise_changes_nothing_at_usual_spreads() -> None:
    """The logarithms of normal values are not normal; at 5 % the rates hold all the same."""
    found = shares(1 + MARGIN, (0.05, 0.05), normal=True)
    assert found["equivalent"] <= ALPHA + TOLERANCE
    assert found["different"] <= ALPHA + TOLERANCE


@pytest.mark.parametrize(
    ("ratio", "right", "wrong"),
    [(1.0, "equivalent", "different"), (1.05, "equivalent", "different"), (1.2, "different", "equivalent")],
)
def test_planted_differences_get_the_right_verdict(ratio: float, right: str, wrong: str) -> None:
    """0 %, 5 % and 20 % with 2 % spread and 5 replicates: right nine times in ten, wrong at most as stated."""
    found = shares(ratio, (0.02, 0.02))
    assert found[right] >= 0.90
    assert found[wrong] <= ALPHA + TOLERANCE


def test_a_family_of_equals_holds_no_difference_more_often_than_stated() -> None:
    """Twelve comparisons of equals, so noisy that the margin is nothing: after Holm's correction at most 5 % of families
    hold a false difference; without it far more would."""
    families = 800
    values = np.random.default_rng(5).lognormal(0, 1.0, (2, 12 * families, 5))
    p_values = ratio_p_values(*values, MARGIN)[1].reshape(families, 12)
    hit = sum(min(holm(family)) <= ALPHA for family in p_values.tolist())
    assert hit / families <= ALPHA + 4 * math.sqrt(ALPHA * (1 - ALPHA) / families)
    assert (p_values.min(1) <= ALPHA).mean() > 0.2


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, Verdict.EQUIVALENT), (1.05, Verdict.EQUIVALENT), (1.2, Verdict.DIFFERENT)]
)
def test_planted_studies_end_to_end(tmp_path: Path, ratio: float, verdict: Verdict) -> None:
    """From artifacts to verdicts: ten replicates of six cells at 2 % spread."""
    respond = planted_response({"one": 1.0, "two": ratio}, 0.02, seed=8)
    write_study(tmp_path, ["one", "two"], {"payload": ["500B", "1MiB", "16MiB"], "offload": ["on", "off"]}, 10, respond)
    result = compare.run(extract(tmp_path, {"planted": planted}, {}))
    rates = [each for each in result.comparisons if each.metric == "requests_per_second"]
    assert [each.verdict for each in rates] == [verdict] * 6
    # Ten packets a request are planted on both, without noise.
    packets = [each for each in result.comparisons if each.metric == "packets_per_request"]
    assert [(each.verdict, each.ratio) for each in packets] == [(Verdict.EQUIVALENT, 1.0)] * 6


def test_a_versus_a_finds_no_difference(tmp_path: Path) -> None:
    respond = planted_response({"one": 1.0, "two": 1.0, "three": 1.0}, 0.05, seed=2)
    write_study(tmp_path, ["one", "two", "three"], {"payload": [f"{size}B" for size in range(20)]}, 5, respond)
    result = compare.run(extract(tmp_path, {"planted": planted}, {}))
    assert Verdict.DIFFERENT not in {each.verdict for each in result.comparisons}
    assert len([each for each in result.comparisons if each.headline]) == 3 * 20 * 2


@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize("ratio", [1.0, 4.0])
def test_intervals_of_spreads_cover_and_tests_reject_as_stated(n: int, ratio: float) -> None:
    """Normal logarithms: 94 % of 95 % intervals at least hold the planted ratio; equals are called different in 6 % at most."""
    noise = np.random.default_rng(n)
    draws = 1500
    tolerance = 4 * math.sqrt(0.05 * 0.95 / draws)
    one, two = noise.normal(0, ratio, (draws, n)), noise.normal(0, 1, (draws, n))
    (low, high), p_values = deviation_ratio_interval(one, two), equal_deviations(one, two)
    assert ((p_values <= ALPHA) == ((low > 1) | (high < 1))).all()
    held, rejected = ((low <= ratio) & (ratio <= high)).sum(), (p_values <= ALPHA).sum()
    assert held / draws >= 0.94 - tolerance
    if ratio == 1:
        assert rejected / draws <= ALPHA + 0.01 + tolerance
    elif n >= 10:
        assert rejected / draws >= 0.8


@pytest.mark.parametrize(("cells", "replicates"), [(1, 6), (4, 5), (12, 3)])
def test_an_order_that_means_nothing_is_called_an_effect_as_rarely_as_stated(cells: int, replicates: int) -> None:
    """Runs in random order in blocks: each of the three tests at most 5 % of the time, by any shape of noise."""
    noise = np.random.default_rng(cells)
    draws = 250
    tolerance = 4 * math.sqrt(ALPHA * (1 - ALPHA) / draws)
    found: Counter[str] = Counter()
    for _ in range(draws):
        values = noise.exponential(1, (cells, replicates))
        places = np.array([noise.permutation(cells) + cells * block for block in range(replicates)]).T
        series = [sorted(zip(at.tolist(), row.tolist(), strict=True)) for at, row in zip(places, values, strict=True)]
        drift = trend(series)
        assert drift is not None
        found["drift"] += drift.p_value <= ALPHA
        blocks = block_effect([[value for _at, value in row] for row in series])
        found["blocks"] += blocks is not None and blocks.p_value <= ALPHA
        residuals = values - values.mean(1, keepdims=True)
        beside = neighbours(residuals.ravel()[np.argsort(places.ravel())].tolist())
        found["serial"] += beside is not None and beside.p_value <= ALPHA
    # Residuals of three replicates are bound to their cell's mean, which neighbours in other blocks feel.
    assert all(found[name] / draws <= ALPHA + 0.01 + tolerance for name in ("drift", "blocks", "serial"))


@pytest.mark.parametrize("n", [5, 10, 30])
def test_names_and_orders_on_the_margin_are_wrong_as_rarely_as_stated(n: int) -> None:
    """Cliff's delta is exactly at the margin of 0.5; shares differ by exactly 0.1."""
    noise = np.random.default_rng(n)
    draws, shift = 600, 0.9538725524
    # P(normal + shift > normal) is 0.75 for a shift of sqrt(2) times the normal quantile of 0.75.
    found: Counter[str] = Counter()
    for _ in range(draws):
        ranks = ordinal_test(noise.normal(shift, 1, n).tolist(), noise.normal(0, 1, n).tolist(), 0.5, ALPHA)
        found["ordinal equivalent"] += ranks.p_equivalent <= ALPHA
        found["ordinal different"] += ranks.p_different <= ALPHA
        names = nominal_test((noise.random(n) < 0.4).tolist(), (noise.random(n) < 0.5).tolist(), 0.1)
        found["nominal equivalent"] += names.p_equivalent is not None and names.p_equivalent <= ALPHA
        found["nominal different"] += names.p_different is not None and names.p_different <= ALPHA
    tolerance = 4 * math.sqrt(ALPHA * (1 - ALPHA) / draws)
    assert all(count / draws <= ALPHA + 0.01 + tolerance for count in found.values()), found
