"""Factors whose levels are drawn, and testbeds that are not measured everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from twinbed import registry
from twinbed.model.run import Level
from twinbed.model.units import parse_size
from twinbed.study.document import StudyError
from twinbed.study.loading import load
from twinbed.study.sample import uniform
from twinbed.study.study import Study


def study(factors: str, only: str = "", seed: int = 7) -> Study:
    text = f"""
study: drawn
seed: {seed}
testbeds:
  virtual: {{driver: container}}
  physical: {{driver: container, cpus: auto{only}}}
workload: {{kind: http}}
factors: {{testbed: [virtual, physical], {factors}}}
"""
    return load(text, "drawn.yaml", registry.catalogue())


def problems(factors: str, only: str = "") -> list[str]:
    with pytest.raises(StudyError) as caught:
        study(factors, only)
    return [str(problem) for problem in caught.value.problems]


def at(study: Study, testbed: str, *names: str) -> list[tuple[Level, ...]]:
    return [tuple(cell.levels[name] for name in names) for cell in study.cells if cell.testbed_name == testbed]


PAYLOAD = "payload: {{log_uniform: [500B, 16MiB], samples: {}}}"


def test_draws_are_uniform_and_cover_every_part() -> None:
    """Of the first 2^m, each of 2^m parts has one; single draws of many seeds are uniform, by Kolmogorov and Smirnov."""
    for name in ("payload", "rate"):
        draws = [uniform(3, name, index) for index in range(64)]
        for m in range(7):
            assert sorted(math.floor(draw * 2**m) for draw in draws[: 2**m]) == [*range(2**m)]
    for index in (0, 1, 5):
        of_seeds = [uniform(seed, "payload", index) for seed in range(400)]
        assert stats.kstest(of_seeds, "uniform").pvalue > 0.001


def test_draws_of_two_factors_have_nothing_to_do_with_each_other() -> None:
    """The mean of correlations over 20 seeds has a standard error of at most 1/sqrt(20 x 32)."""
    correlations = []
    for seed in range(20):
        one, other = ([uniform(seed, name, index) for index in range(32)] for name in ("payload", "rate"))
        correlations.append(np.corrcoef(one, other)[0, 1])
    assert abs(np.mean(correlations)) < 4 / math.sqrt(20 * 32)


def test_levels_are_drawn_alike_on_every_testbed_and_kept_when_a_study_grows() -> None:
    few, more = study(PAYLOAD.format(10)), study(PAYLOAD.format(50))
    levels = few.factors["payload"]
    assert more.factors["payload"][:10] == levels and len(set(more.factors["payload"])) == 50
    assert at(few, "virtual", "payload") == at(few, "physical", "payload") == [(level,) for level in levels]
    assert {cell.run(replicate=0, block=0, position=0).id for cell in few.cells} <= {
        cell.run(replicate=0, block=0, position=0).id for cell in more.cells
    }
    sizes = np.array([parse_size(level) for level in more.factors["payload"]])
    assert sizes.min() >= 500 and sizes.max() <= 16 * 2**20
    shares = np.log(sizes / 500) / math.log(16 * 2**20 / 500)
    assert stats.kstest(shares, "uniform").statistic < 0.05, "log-uniform, and spread evenly"
    assert study(PAYLOAD.format(10), seed=8).factors["payload"] != levels


@pytest.mark.parametrize(
    ("levels", "within"),
    [
        ("threads: {integers: [1, 8], samples: 8}", {*range(1, 9)}),
        ("threads: {choice: [1, 2, 16], samples: 3}", {1, 2, 16}),
    ],
)
def test_whole_numbers_and_choices(levels: str, within: set[int]) -> None:
    assert set(study(levels).factors["threads"]) == within


def test_ranges_of_numbers_rates_and_times_are_written_as_a_study_has_them() -> None:
    drawn = study("rate: {log_uniform: [10mbit, 1gbit], samples: 5}, delay: {uniform: [1ms, 20ms], samples: 5}")
    assert all(10**7 <= cell.topology.link.rate <= 10**9 for cell in drawn.cells if cell.topology.link.rate)
    assert len({cell.topology.link.rate for cell in drawn.cells}) == 5
    assert all(0.001 <= cell.topology.link.delay <= 0.02 for cell in drawn.cells)
    assert all(str(level).endswith(("ms", "us")) for level in drawn.factors["delay"])


def test_a_hypercube_varies_together() -> None:
    both = "hypercube: {samples: 16, payload: {log_uniform: [500B, 16MiB]}, threads: {integers: [1, 4]}}"
    found = study(both)
    pairs = set(at(found, "virtual", "payload", "threads"))
    assert len(pairs) == 16 and {threads for _, threads in pairs} == {1, 2, 3, 4}
    assert [sum(threads == each for _, threads in pairs) for each in (1, 2, 3, 4)] == [4, 4, 4, 4], "each part as often"
    assert set(at(found, "physical", "payload", "threads")) == pairs
    assert found.factors["threads"] == tuple(dict.fromkeys(found.factors["threads"]))


def test_a_testbed_is_measured_at_some_levels_only() -> None:
    whole = study(PAYLOAD.format(20) + ", threads: [1, 2]")
    some = study(PAYLOAD.format(20) + ", threads: [1, 2]", ", only: {payload: {random: 6}, threads: [2]}")
    more = study(PAYLOAD.format(40) + ", threads: [1, 2]", ", only: {payload: {random: 9}, threads: [2]}")
    assert at(some, "virtual", "payload", "threads") == at(whole, "virtual", "payload", "threads")
    own = at(some, "physical", "payload", "threads")
    assert len(own) == 6 and {threads for _, threads in own} == {2}
    assert set(own) <= set(at(more, "physical", "payload", "threads")), "growing keeps them"


def test_listed_levels_are_chosen_at_random() -> None:
    listed: Sequence[str] = [f"{each}kB" for each in range(1, 21)]
    chosen: dict[str, int] = dict.fromkeys(listed, 0)
    for seed in range(100):
        some = study(f"payload: [{', '.join(listed)}]", ", only: {payload: {random: 5}}", seed)
        more = study(f"payload: [{', '.join(listed)}]", ", only: {payload: {random: 8}}", seed)
        own = {str(level) for (level,) in at(some, "physical", "payload")}
        assert len(own) == 5 and own < {str(level) for (level,) in at(more, "physical", "payload")}
        for level in own:
            chosen[level] += 1
    # Each in a quarter of 100: chi-squared of 20 levels.
    assert stats.chisquare([*chosen.values()]).pvalue > 0.001


@pytest.mark.parametrize(
    ("factors", "only", "says"),
    [
        ("payload: {log_uniform: [500B, 1MiB]}", "", "factors.payload.samples: is required: how many levels are drawn"),
        (
            "payload: {loguniform: [1, 2], samples: 3}",
            "",
            "is not a way to draw levels; allowed: log_uniform, uniform",
        ),
        ("payload: {samples: 3}", "", "does not name one distribution"),
        ("payload: {uniform: [1MiB, 500B], samples: 3}", "", "is not a range; allowed: the smaller value first"),
        ("payload: {uniform: [1MiB, 5s], samples: 3}", "", "is not a range; allowed: two numbers, sizes, rates or durations"),
        ("payload: {log_uniform: [0B, 5kB], samples: 3}", "", "has no logarithm; allowed: a range above 0"),
        ("threads: {integers: [1, 2], samples: 3}", "", "has fewer than 3 different levels"),
        ("threads: {integers: [1, 8], samples: 0}", "", "0 is not a number of levels"),
        ("hypercube: {payload: {log_uniform: [1, 9]}}", "", "factors.hypercube.samples: is required"),
        ("hypercube: {samples: 4, payload: [1, 2]}", "", "factors.hypercube.payload: does not name its distribution"),
        (
            PAYLOAD.format(5),
            ", only: {payload: {random: 6}}",
            "does not say which levels of payload are measured; allowed",
        ),
        (PAYLOAD.format(5), ", only: {payload: [1kB]}", "testbeds.physical.only.payload: is not a level of payload"),
        (
            PAYLOAD.format(5),
            ", only: {paylod: {random: 2}}",
            "only.paylod: is not a factor; allowed: payload",
        ),
        (PAYLOAD.format(5), ", only: 5", "testbeds.physical.only: is not a mapping"),
    ],
)
def test_what_is_wrong_is_told(factors: str, only: str, says: Any) -> None:
    found = problems(factors, only)
    assert len(found) == 1 and says in found[0], found
