"""docs/coverage.md in small: vectorised methods equal the program's, coverage and sizes are as stated, and cautions are
given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.coverage import ALPHA, FEW, coverage, doubts, filled, part, planned, read_pages, tables, verdicts
from benchmarks.simulated.arrays import LEVEL, brown_forsythe, equal_deviations, mann_whitney, ratio_p_values
from benchmarks.simulated.corpus import CORPORA, count
from benchmarks.simulated.methods import METHODS, TRUE_RATIO, Method
from benchmarks.simulated.populations import POPULATIONS, Population
from benchmarks.simulated.shared import MARGIN, SPREAD

from twinbed.executor.local import Processes
from twinbed.statistics import ordinal, ratio, spread

VECTORISED = [method for method in METHODS if method.at_once is not None]


def samples(of: Population, studies: int, n: int, ratio: float = TRUE_RATIO, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    noise = np.random.default_rng([seed, n])
    return ratio * of.draw(noise, studies, n), of.draw(noise, studies, n)


@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: population.name)
@pytest.mark.parametrize("method", VECTORISED, ids=lambda method: method.name)
def test_intervals_of_arrays_are_the_programs(method: Method, population: Population, n: int) -> None:
    x, y = samples(population, 40, n)
    assert method.at_once is not None
    low, high = method.at_once(x, y)
    own = [method.program(one, two) for one, two in zip(x.tolist(), y.tolist(), strict=True)]
    assert [math.isnan(each) for each in low] == [each is None for each in own]
    for at, each in enumerate(own):
        if each is not None:
            assert (low[at], high[at]) == pytest.approx((each.low, each.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [3, 10])
@pytest.mark.parametrize("population", POPULATIONS, ids=lambda population: population.name)
def test_p_values_of_arrays_are_the_programs(population: Population, n: int) -> None:
    x, y = samples(population, 60, n)
    inside, outside = ratio_p_values(x, y, 0.1)
    bonett = equal_deviations(x, y)
    equal, ranked = brown_forsythe(x, y), mann_whitney(x, y)
    for at, (one, two) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        test = ratio.ratio_test(one, two, 0.1, 0.05)
        assert test is not None
        assert (inside[at], outside[at]) == pytest.approx((test.p_equivalent, test.p_different), abs=1e-9)
        assert ranked[at] == pytest.approx(ordinal.mann_whitney(one, two))
        own = spread.brown_forsythe(one, two)
        assert own is None or equal[at] == pytest.approx(own, abs=1e-9)
        own = spread.equal_deviations(one, two)
        assert math.isnan(bonett[at]) if own is None else bonett[at] == pytest.approx(own, abs=1e-9)


def method(beginning: str) -> Method:
    (found,) = (each for each in METHODS if each.name.startswith(beginning))
    return found


def population(name: str) -> Population:
    return next(each for each in POPULATIONS if each.name == name)


def held(name: str, of: str, n: int) -> float:
    return coverage(method(name), population(of), STUDIES, n, seed=2)[0]


STUDIES = 4000
TOLERANCE = 4 * math.sqrt(LEVEL * (1 - LEVEL) / STUDIES)
"""Four standard errors of a share of STUDIES at LEVEL."""


@pytest.mark.parametrize("n", [3, 5, 10, 30])
def test_intervals_that_are_exact_cover_as_stated(n: int) -> None:
    assert held("mean", "normal", n) == pytest.approx(LEVEL, abs=TOLERANCE)
    # Welch's approximation errs to the safe side for very few values.
    assert LEVEL - TOLERANCE <= held("ratio of means: Welch", "log-normal", n) <= LEVEL + TOLERANCE + (0.02 if n == 3 else 0)


@pytest.mark.parametrize("of", ["normal", "log-normal", "bimodal", "zeros"])
def test_order_statistics_cover_at_least_as_stated_whatever_the_values(of: str) -> None:
    for n in (10, 30):
        assert held("median", of, n) >= LEVEL - TOLERANCE
    assert held("quantile 0.9", of, 30) >= LEVEL - TOLERANCE
    assert math.isnan(held("median", of, 5)), "too few for any"


@pytest.mark.parametrize("of", ["normal", "log-normal", "bimodal", "zeros"])
@pytest.mark.parametrize("n", [3, 5, 30])
def test_cliffs_delta_covers_as_stated_even_where_no_values_overlap(of: str, n: int) -> None:
    assert held("Cliff", of, n) >= LEVEL - TOLERANCE - 0.01


@pytest.mark.parametrize("of", ["normal", "log-normal"])
@pytest.mark.parametrize("n", [3, 5, 10, 30])
def test_wrong_verdicts_are_as_rare_as_stated(of: str, n: int) -> None:
    equivalent, different = verdicts(population(of), 1 + population(of).margin, STUDIES, n, seed=2)
    assert equivalent <= ALPHA + TOLERANCE
    assert different <= ALPHA + TOLERANCE


def test_where_three_values_fail_the_program_warns_of_them() -> None:
    """Three values of two modes are all of one in a quarter of the studies: the interval of the mean is then far too short."""
    assert held("mean", "bimodal", 3) < 0.80
    assert doubts(population("bimodal"), 50, 3, seed=2)[0] == 1.0
    assert doubts(population("bimodal"), 50, 30, seed=2) == (0.0, 1.0, pytest.approx(0.05, abs=0.13))


def test_where_runs_depend_on_each_other_the_program_says_so_if_there_are_enough() -> None:
    assert held("mean", "autocorrelated", 30) < 0.80
    assert doubts(population("autocorrelated"), 200, 30, seed=2)[2] > 0.5


def test_a_small_corpus_is_carried_out_and_counted() -> None:
    """One study of each kind, of the hundreds of docs/coverage.md."""
    for corpus in CORPORA:
        found = count(corpus, 1)
        assert found.comparisons in (2, 18)
        assert found.wrong == 0 or not corpus.family


def test_the_page_has_every_table_and_states_what_they_were_made_with() -> None:
    page = read_pages()
    found = tables(page)
    assert set(found) == set(planned((10_000, 1_000, 500, 200), 1))
    assert all(table.count("\n| ") >= 3 for table in found.values())
    assert (LEVEL, TRUE_RATIO, ALPHA, FEW, MARGIN, SPREAD) == (0.95, 1.2, 0.05, 5, 0.1, 0.075)


def test_a_table_is_put_in_its_place() -> None:
    page = read_pages()
    changed = filled(page, {"blocks": "| new |\n"})
    assert tables(changed) == {**tables(page), "blocks": "| new |\n"}
    assert filled(changed, tables(page)) == page


def test_tables_are_the_same_from_other_processes() -> None:
    tasks = [("blocks", (10, 1)), ("sessions", (10, 1)), ("intervals 1", (1, 10, 2, 1))]
    assert list(Processes(2).map(part, tasks)) == [part(task) for task in tasks]
