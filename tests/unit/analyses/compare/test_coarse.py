"""Equivalences that rest on how values were rounded: inconclusive where the step is known, else a caution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from synthetic_results import write_study
from twinbed.analyses.compare.decision import Case, Nature, Rules, judge
from twinbed.analyses.compare.gathered import CompareParams
from twinbed.analyses.compare.method import analysis as compare
from twinbed.model.caution import Kind
from twinbed.model.result import Verdict
from twinbed.observations.units import Arranged
from twinbed.results.extract import extract
from twinbed.statistics.sample import Sample
from twinbed.workloads.planted import planted

RULES = Rules(0.1, 0.05, 0.95)


def case(one: Sequence[float], two: Sequence[float], steps: tuple[float, float], rules: Rules = RULES) -> Case:
    here, there = Sample(map(float, one)), Sample(map(float, two))
    return Case("ratio", here, there, Arranged(here, there), Nature(steps=steps), rules)


def test_a_known_step_leaves_no_equivalence_and_a_constant_without_one_has_a_caution() -> None:
    """16 to 24 for 20 at ticks of 8: a ratio of up to 1.5. In whole ones from 19.5 to 20.5: up to 1.051."""
    ticks, whole = (judge(case([20] * 5, [20] * 5, (step, step))) for step in (8.0, 1.0))
    assert (ticks.verdict, ticks.coarse) == (Verdict.INCONCLUSIVE, "")
    assert whole.verdict is Verdict.EQUIVALENT and "all values of a side are equal" in whole.coarse
    counted = judge(case([20] * 5, [20] * 5, (0.0, 0.0)))
    assert (counted.verdict, counted.coarse) == (Verdict.EQUIVALENT, "")


def test_each_side_is_off_by_its_own_step() -> None:
    """A constant 10.4 that was not rounded, against 10 that may be 9.5: at most 1.095; rounded, it may be 10.9."""
    fine = judge(case([10.4] * 5, [10.0] * 5, (0.0, 1.0)))
    assert (fine.verdict, fine.ratio_interval and fine.ratio_interval.high) == (Verdict.EQUIVALENT, pytest.approx(10.4 / 9.5))
    both = judge(case([10.4] * 5, [10.0] * 5, (1.0, 1.0)))
    assert (both.verdict, both.ratio_interval and both.ratio_interval.high) == (Verdict.INCONCLUSIVE, pytest.approx(10.9 / 9.5))


def test_programs_that_cut_off_beside_others_that_round() -> None:
    """1.057 with an interval up to 1.09; half a step of 17.5 more is above 1.1. Of one program both are off the same way."""
    values = [18, 19] * 5, [17, 18] * 5
    own = judge(case(*values, (1.0, 1.0)))
    elsewhere = judge(case(*values, (1.0, 1.0), replace(RULES, elsewhere=True)))
    assert own.verdict is elsewhere.verdict is Verdict.EQUIVALENT
    assert own.coarse == "" and "cuts digits off" in elsewhere.coarse
    far = judge(case([210, 220] * 5, [200, 210] * 5, (1.0, 1.0), replace(RULES, elsewhere=True)))
    assert far.verdict is Verdict.EQUIVALENT and far.coarse == "", "half a step is a quarter of a per cent"


def test_a_coarse_equivalence_is_cautioned_of_with_its_study(tmp_path: Path) -> None:
    write_study(tmp_path, ["a", "b"], {}, 5, lambda testbed, levels, replicate: {"requests_per_second": 20.0})
    result = compare.run(extract(tmp_path, {"planted": planted}, {}), CompareParams())
    [found] = [each for each in result.comparisons if each.metric == "requests_per_second"]
    assert found.verdict is Verdict.EQUIVALENT
    assert Kind.COARSE in {each.kind for each in found.cautions} & {each.kind for each in result.cautions}
