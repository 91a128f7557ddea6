"""Limits at which values end, such as a time-out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from twinbed.analyses.compare.decision import Case, Nature, Rules, judge
from twinbed.model.result import Verdict
from twinbed.observations.units import Arranged
from twinbed.statistics.resolution import Limit, limit
from twinbed.statistics.sample import Sample

ENDING = [10.0, 7.21348, 10.0, 10.0, 10.0], [10.0, 10.0, 9.88341, 10.0, 10.0]


@pytest.mark.parametrize(
    ("values", "reference", "steps", "found"),
    [
        (*ENDING, (0.0, 0.0), Limit(10.0, 4, 4)),
        ([10.0] * 5, ENDING[0], (1.0, 0.0), Limit(10.0, 5, 4)),  # nothing shows the step of the first
        ([7.1, 8.32, 9.15], ENDING[0], (0.01, 0.0), Limit(10.0, 0, 4)),
        ([16.0, 12.0, 16.0, 16.0], [16.0, 16.0, 12.0, 20.0], (4.0, 4.0), None),  # ticks
        ([10.0] * 5, [10.0] * 5, (1.0, 1.0), None),  # a constant
        ([9.1234, 7.2341, 8.2345], [8.1234, 8.2213, 7.9915], (0.0, 0.0), None),
        ([9.0, 10.0, 10.0, 8.0], [7.1234, 8.2341, 9.2345, 8.1], (1.0, 0.0), None),  # whole ones beside finer values
    ],
)
def test_a_limit_is_a_largest_value_that_several_runs_have(
    values: Sequence[float], reference: Sequence[float], steps: tuple[float, float], found: Limit | None
) -> None:
    assert limit(values, reference, steps) == found


def test_means_of_times_that_end_at_a_limit_are_not_equivalent() -> None:
    """Rates end at what a link carries, and that is no limit of the measurement."""
    one, two = map(Sample, ENDING)

    def verdict_at(margin: float, *, timed: bool) -> tuple[Verdict, str]:
        judged = judge(Case("ratio", one, two, Arranged(one, two), Nature(timed=timed), Rules(margin, 0.05, 0.95)))
        return judged.verdict, judged.censored

    times = verdict_at(0.3, timed=True)
    assert times == (Verdict.INCONCLUSIVE, "4 of 5 runs here and 4 of 5 on the reference have the largest value, 10")
    assert verdict_at(0.3, timed=False) == (Verdict.EQUIVALENT, "")
