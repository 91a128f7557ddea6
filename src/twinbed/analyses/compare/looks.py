"""A ratio's test at one of several looks: the same verdicts, with error rates that hold over all looks together.

P-values become those of the whole procedure (``statistics.sequential``), so that they are held against alpha, and corrected
for a family, as any other.  Intervals are Jennison and Turnbull's repeated ones: those of all looks hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from twinbed.analyses.compare.equivalence import RatioTest, ratio_test
from twinbed.model.result import Interval
from twinbed.statistics.sequential import look_levels, overall_level

UNLOOKED = "unlooked"
"""The method of what no look has been taken at: there is no verdict yet."""


def at_look(
    found: RatioTest,
    values: Sequence[float],
    reference: Sequence[float],
    margin: float,
    alpha: float,
    information: tuple[float, ...],
) -> RatioTest:
    """``found`` as of the last of the looks at ``information``."""
    if not information:
        return replace(found, interval=None, wide=None, p_equivalent=1.0, p_different=1.0, method=UNLOOKED)

    def interval(level: float) -> Interval | None:
        test = ratio_test(values, reference, margin, look_levels(level, information)[-1])
        return replace(test.interval, level=1 - 2 * level) if test and test.interval else None

    return replace(
        found,
        interval=interval(alpha),
        wide=interval(alpha / 2),
        p_equivalent=overall_level(found.p_equivalent, information),
        p_different=min(1.0, 2 * overall_level(found.p_different / 2, information)),
    )
