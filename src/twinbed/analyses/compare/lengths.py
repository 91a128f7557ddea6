"""Quantiles of single requests or probes, compared between runs that hold unlike numbers of them.

The k-th smallest of n exponential times has the expectation sum of 1/i, i from n - k + 1 to n (Renyi 1953, Acta Math. Acad.
Sci. Hung. 4:191), in units of their mean: the 99th percentile of 100 is 9 % below that of 10,000, and the largest grows without
end.  The law is the exponential one whatever the times' own is, so that the size is a rough one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from statistics import fmean

from scipy.special import psi

from twinbed.model.caution import Caution, Kind
from twinbed.observations.samples import CellRuns, Key
from twinbed.show.quantities import two_digits
from twinbed.statistics.sample import Sample

COUNTS = ("requests", "probes_received", "transactions", "samples")
"""The metrics that say of how many times a quantile is."""
PART = 0.1
"""Share of the margin: a bias below it decides nothing."""
_QUANTILE = re.compile(r"_p(\d\d)(\d?)$|_max$")


def share_of(metric: str) -> float | None:
    """Return the share of times that are at most the metric, 0.99 of ``total_time_p99``; None where it is no quantile."""
    match = _QUANTILE.search(metric)
    if match is None:
        return None
    return float(f"0.{match[1]}{match[2]}") if match[1] else 1.0


def expected(share: float, count: float) -> float:
    """Return the expectation of a quantile of ``count`` exponential times whose mean is 1.

    >>> round(expected(0.99, 100), 3), round(expected(0.99, 10_000), 3), round(expected(1, 3), 3)
    (4.187, 4.6, 1.833)
    """
    below = min(count, math.ceil(round(share * count, 6)))
    return float(psi(count + 1) - psi(count - below + 1))


def cautions(key: Key, groups: tuple[CellRuns, CellRuns], margin: float) -> Iterator[Caution]:
    """Yield a caution where a metric is a quantile of as unlike numbers of times as move it by a part of the margin."""
    share = share_of(key[0])
    counts = None if share is None else _counts(key, groups)
    if share is None or counts is None:
        return
    own, reference = (fmean(expected(share, count) for count in sample) for sample in counts)
    if min(own, reference) > 0 and abs(math.log(own / reference)) > PART * math.log1p(margin):
        numbers, off = " and ".join(f"{sample.average:,.0f}" for sample in counts), two_digits(100 * (own / reference - 1), "+")
        yield Caution(
            Kind.UNLIKE_LENGTHS,
            f"from {numbers} values a run; for exponential times this alone changes the quantile by {off} %",
            key[0],
        )


def _counts(key: Key, groups: tuple[CellRuns, CellRuns]) -> tuple[Sample, Sample] | None:
    for name in COUNTS:
        for place in ((name, *key[1:]), (name, "", "")):
            own, reference = (group.values.get(place) for group in groups)
            if own and reference and min(own.least, reference.least) >= 1:
                return own, reference
    return None
