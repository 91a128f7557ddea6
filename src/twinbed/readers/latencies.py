"""The table ``latencies``: the times of a run's requests as a histogram, for runs of so many that a row each is too much.

Columns: source (``exchanges`` or ``requests``, the table that would have a row each), place (the link, or the host), from_ns
and to_ns (the bucket of ``statistics.histogram``), requests (how many).  Requests without an answer have no bucket: null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from twinbed.statistics.histogram import Histogram

NAME = "latencies"
MOST_ROWS = 1_000_000
"""Requests of a run that are kept one by one."""


def rows(source: str, place: str, times: Histogram, unanswered: int) -> pa.Table:
    """Return the rows of one link or host."""
    import numpy as np
    import pyarrow as pa

    from twinbed.statistics.histogram import lowest

    low, high = lowest(times.buckets), lowest(times.buckets + 1)
    missing = [None] * bool(unanswered)
    counts = np.append(times.counts, [unanswered] if unanswered else np.empty(0, np.int64))
    return pa.table(
        {
            "source": pa.array([source] * len(counts), pa.string()),
            "place": pa.array([place] * len(counts), pa.string()),
            "from_ns": pa.array([*low.tolist(), *missing], pa.int64()),
            "to_ns": pa.array([*high.tolist(), *missing], pa.int64()),
            "requests": pa.array(counts, pa.int64()),
        }
    )
