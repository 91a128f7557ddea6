"""Do values end at a limit, such as a time-out?

If several values of a sample are the largest of two samples, and the others differ far more than they are rounded, the largest
is a limit: larger values were recorded as the limit.  Means then say nothing about larger values.  By chance the t largest of N
values share one of the R steps between the smallest and the largest with a probability of about C(N-1, t-1) / R^(t-1), if all
steps are as likely. Times are, if anything, sparser at their upper end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from twinbed.statistics.resolution import DIGITS, printed_step

BY_CHANCE = 0.001
"""The largest values are a limit only if chance makes them the same less often than this."""

OFF = 0.01
"""Values in steps may be off them by this share of a step."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A value at which others end, and how many end there, here and on the reference."""

    value: float
    here: int
    reference: int


def limit(values: Sequence[float], reference: Sequence[float], steps: tuple[float, float]) -> Limit | None:
    """Return the limit at which values of two samples end; None where none shows. ``steps``: what they are rounded to, or 0.

    >>> limit([10.0, 7.2134, 10.0], [10.0, 10.0, 5.1352], (0.0001, 0.0001))
    Limit(value=10.0, here=2, reference=2)
    >>> limit([10.0, 9.0, 10.0], [10.0, 10.0, 8.0], (1.0, 1.0))
    """
    samples = values, reference
    most = max(map(max, samples))
    if not any(_ends(sample, most, step) for sample, step in zip(samples, steps, strict=True)):
        return None
    return Limit(most, *(sum(value == most for value in sample) for sample in samples))


def _ends(sample: Sequence[float], most: float, step: float) -> bool:
    """Return whether several values are the largest of all, and not by chance."""
    ends = sum(value == most for value in sample)
    if ends < 2 or ends == len(sample):
        return False
    if step and any(abs(value / step - round(value / step)) > OFF for value in sample):
        step = printed_step(sample)  # one value beside a limit makes a step of its own
    places = (most - min(sample)) / max(step, abs(most) * 10.0**-DIGITS)
    return places >= 1 and math.comb(len(sample) - 1, ends - 1) * places ** (1 - ends) <= BY_CHANCE
