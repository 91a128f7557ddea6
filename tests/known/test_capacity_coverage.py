"""Capacity on planted studies and on printed data: its statements are right as often as it says.

The answers are known because they are planted, or read off ONL's printed Table 3.
"""

from __future__ import annotations

import csv
from importlib import resources

import numpy as np
import pytest
from benchmarks.simulated.losses import SIZES, WORLDS, World, named

import draws
from twinbed.statistics.capacity import Capacity, Objective, capacity, sentence

STUDIES = draws.studies(150, 2000)
LEAST = 0.95 - draws.room(0.95, STUDIES)
pytestmark = pytest.mark.soak
TESTED = (1, 2, 4, 8, 16, 40, 80)


def planted(shares: dict[int, float], spread: float, runs: int, seed: int) -> Capacity:
    """90 % of the single-pair rate, of lognormal rates whose medians are shares of 1000."""
    chance = np.random.default_rng(seed)
    samples = {n: (1000 * share * np.exp(chance.normal(0, spread, runs))).tolist() for n, share in shares.items()}
    return capacity(samples, Objective(0.9, at_most=False, relative=True))


def knee(n: int, at: float, steepness: float) -> float:
    return 1.0 if n <= at else (at / n) ** steepness


@pytest.mark.parametrize("steepness", [0.2, 1.0])
@pytest.mark.parametrize(("spread", "runs"), [(0.03, 3), (0.05, 5), (0.15, 10)])
def test_a_planted_knee_is_inside_its_interval(steepness: float, spread: float, runs: int) -> None:
    at = 10.0
    shares = {n: knee(n, at, steepness) for n in TESTED}
    # The last N between tested ones that keeps 90 %, as a whole number.
    truth = int(at / 0.9 ** (1 / steepness))
    assert 8 <= truth < 80
    found = [planted(shares, spread, runs, seed) for seed in range(draws.SEED, draws.SEED + STUDIES)]
    below = sum((each.keeps or 0) <= truth for each in found)
    inside = sum(each.low <= truth and (each.high is None or truth <= each.high) for each in found)
    assert below >= LEAST * STUDIES
    assert inside >= LEAST * STUDIES


def test_a_rate_exactly_at_the_bound_is_named_in_at_most_five_percent() -> None:
    chance = np.random.default_rng(7 + draws.SEED)
    wrong = 0
    for _ in range(STUDIES):
        samples = {1: chance.normal(0.2, 0.05, 5).tolist(), 2: chance.normal(1.0, 0.2, 5).tolist()}
        wrong += capacity(samples, Objective(1.0, at_most=True)).keeps == 2
    assert wrong <= (1 - LEAST) * STUDIES


def test_no_fall_is_at_least_the_most_tested() -> None:
    found = planted(dict.fromkeys(TESTED, 1.0), 0.02, 5, 1)
    assert (found.keeps, found.fails, found.high, found.knee) == (80, None, None, None)
    assert sentence(found, "pair", "pairs") == "at least 80 pairs: more than 99.9 % sure; larger N were not tested"


def printed_losses() -> dict[int, list[float]]:
    text = resources.files("twinbed.published").joinpath("data/ONL-3.tsv").read_text()
    losses: dict[int, list[float]] = {}
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        if row["kind"] == "value":
            losses.setdefault(int(row["receivers"]), []).append(float(row["printed"]))
    return losses


def test_five_receivers_of_onl_lose_at_most_one_percent() -> None:
    losses = printed_losses()
    found = capacity(losses, Objective(1.0, at_most=True))
    # Five runs without loss are 1 - 2^-5 = 96.9 % sure of the median run: less than the 97.5 % that the interval asks.
    assert (found.keeps, found.fails, found.low, found.high) == (5, 6, 0, None)
    # By R: t.test(c(3.325, 5.817, 4.4, 7.083, 2.1)), whose p-value for mu = 1, alternative = "less" is 0.992.
    six = found.steps[5]
    assert losses[6] == [3.325, 5.817, 4.4, 7.083, 2.1]
    assert six.mean == pytest.approx(4.545)
    assert (six.interval.low, six.interval.high) == pytest.approx((2.097089, 6.992911), abs=1e-6)
    assert six.fails == 1 - 1 / 32
    # Straight between 0.1532 at 5 and 4.545 at 6.
    assert found.knee == pytest.approx(5 + (1 - 0.1532) / (4.545 - 0.1532))
    assert sentence(found, "receiver", "receivers") == (
        "5 receivers: 96.8 % sure of most runs (5 of 5 kept it; up to 45 % of all may not); 6: no, 96.8 % sure of most runs "
        "(the mean there is 4.54, 2.1 to 6.99)"
    )


def test_between_tested_numbers_nothing_is_said() -> None:
    losses = printed_losses()
    found = capacity({n: losses[n] for n in (2, 5, 8)}, Objective(1.0, at_most=True))
    assert (found.keeps, found.fails, found.low, found.high) == (5, 8, 0, None)
    assert sentence(found, "receiver", "receivers").endswith("N between them were not tested")


def test_where_the_least_fails_there_is_none() -> None:
    losses = printed_losses()
    found = capacity({n: losses[n] for n in (6, 7)}, Objective(1.0, at_most=True))
    assert (found.keeps, found.low, found.fails, found.knee) == (None, 0, 6, None)
    assert sentence(found, "receiver", "receivers").startswith("not even 6 receivers; 6: no")


@pytest.mark.parametrize(
    ("samples", "relative", "message"),
    [
        ({}, False, "no runs"),
        ({0: [1.0, 2.0]}, False, "N = 0"),
        ({1: [1.0]}, False, "1 run at N = 1"),
        ({2: [1.0, 2.0]}, True, "no runs at N = 1"),
        ({1: [0.0, 0.0], 2: [1.0, 2.0]}, True, "the mean at N = 1 is 0"),
        ({1: [-1.0, 0.5], 2: [1.0, 2.0]}, True, "the mean at N = 1 is -0.25"),
    ],
)
def test_what_cannot_be_said_is_an_error(samples: dict[int, list[float]], relative: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        capacity(samples, Objective(0.9, at_most=False, relative=relative))


@pytest.mark.parametrize("at_most", [True, False])
@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3])
def test_equal_values_at_the_bound_keep_it_whatever_their_sum_rounds_to(value: float, at_most: bool) -> None:
    """Three times 0.1 is more than 0.3 in binary, so that a mean of tenths is not a tenth."""
    assert sum([0.1] * 3) / 3 != 0.1
    found = capacity({1: [value] * 5, 2: [value] * 6}, Objective(value, at_most))
    assert (found.keeps, found.fails) == (2, None)
    assert [step.keeps for step in found.steps] == [1 - 1 / 32, 1 - 1 / 32], "the sign test, least so far"


def test_equal_values_are_as_sure_as_their_number() -> None:
    """No loss in n runs says of the median run that it keeps it, at 1 - 2^-n: 87.5 % of three, 96.9 % of five."""
    found = capacity({1: [0.1] * 5, 2: [0.3] * 5}, Objective(0.2, at_most=True))
    assert (found.keeps, found.fails) == (1, 2)
    three = capacity({1: [0.0] * 3, 2: [0.0] * 3}, Objective(0.01, at_most=True))
    assert (three.keeps, three.fails, three.steps[0].keeps, three.steps[0].more) == (None, None, 0.875, 2)
    assert sentence(three, "pair", "pairs") == ("not even 1 pair: not shown (87.5 % sure; about 2 more runs would settle it)")


def test_a_loss_is_not_negative() -> None:
    """By R: t.test(c(0, 0, 0.3)) has an interval of -0.33 to 0.53."""
    found = capacity({1: [0.0, 0.0, 0.3]}, Objective(0.01, at_most=True)).steps[0]
    assert found.interval.low == 0 and found.interval.high == pytest.approx(0.5303, abs=1e-4)


def test_shares_of_equal_values_are_no_noise() -> None:
    """What 3 pairs did together, divided by 3, is a rounding off what one did: 90 % of it is kept, and 100 % too."""
    single, third = 0.1, 0.3 / 3
    assert single != third
    found = capacity({1: [single] * 5, 3: [third] * 5}, Objective(1.0, at_most=False, relative=True))
    assert found.keeps == 3


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (0.95, "at least 1 pair: more than 99.9 % sure; larger N were not tested"),
        (0.9999, "not even 1 pair: not shown (99.95 % sure; about 2 more runs would settle it)"),
    ],
)
def test_a_doubt_is_told_from_the_level_that_it_misses(level: float, said: str) -> None:
    """8.61 standard errors: by any table the 99.95 % quantile of Student's t with 4 degrees of freedom is 8.610. Of 6 runs it
    would be 9.43, below the 99.99 % quantile with 5, 9.678; of 7 it would be 10.19, above 8.025."""
    values = [0.5**0.5 * 8.611 + offset for offset in (-2, -1, 0, 1, 2)]
    assert sentence(capacity({1: values}, Objective(0.0, at_most=False), level), "pair", "pairs") == said


@pytest.mark.parametrize("world", [world for world in WORLDS if not world.most], ids=lambda world: world.name)
@pytest.mark.parametrize("n", SIZES)
def test_what_most_runs_do_not_keep_is_named_in_at_most_five_percent(world: World, n: int) -> None:
    """Of 300 studies; 26 are three standard errors above."""
    assert named(world, n, 300, 2).keeps <= 26 / 300


def test_a_rare_bad_run_is_in_the_sentence() -> None:
    """Five runs without loss leave 1 - 0.05^(1/5) = 45 % of runs unseen (Clopper, Pearson). One of five with 15: a mean of 3
    and an error of 3, so that t against 1 is -2/3, which 27.07 % of Student's t with 4 degrees of freedom lie below."""
    found = capacity({1: [0.0] * 5, 2: [0.0, 0.0, 15.0, 0.0, 0.0], 3: [15.0] * 5}, Objective(1.0, at_most=True))
    assert found.steps[0].share == pytest.approx(0.05**0.2)
    assert (found.keeps, found.fails) == (1, 3)
    assert sentence(found, "pair", "pairs") == (
        "1 pair: 96.8 % sure of most runs (5 of 5 kept it; up to 45 % of all may not); 2: not shown (27 % sure); "
        "3: no, 96.8 % sure of most runs (the mean there is 15, 15 to 15)"
    )
