"""Compare one level with another on the same testbed, for the tables that a study file asks for.

Both cells' runs are compared as independent samples, by Welch's test on logarithms (``statistics.ratio``), at the level of the
intervals on which verdicts rest. It decides nothing.
"""

from __future__ import annotations

from twinbed.model.comparison import Estimated
from twinbed.model.result import Interval
from twinbed.model.tables import Outline
from twinbed.statistics.ratio import ratio_test


def level_ratio(of: Estimated, base: Estimated, outline: Outline) -> tuple[float, Interval] | None:
    """Return the ratio of their means and its interval; None with fewer than two values, negative ones, or no bounds."""
    samples = of.estimate.values, base.estimate.values
    if min(map(len, samples)) < 2:
        return None
    test = ratio_test(*samples, outline.margin, round(1 - outline.confidence, 12))
    if test is None or test.ratio is None or test.interval is None:
        return None
    return test.ratio, Interval(test.interval.low, test.interval.high, test.interval.level)
