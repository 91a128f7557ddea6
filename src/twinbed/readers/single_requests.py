"""The table ``requests`` of a program's own times, one after another; of very many requests the histogram alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twinbed.readers.latencies import MOST_ROWS, NAME, rows

if TYPE_CHECKING:
    import pyarrow as pa


def requests(times_s: Sequence[float], host: str, most: int = MOST_ROWS) -> dict[str, pa.Table]:
    """Return ``requests``, or ``latencies`` of more than ``most``. A request starts when the one before has ended."""
    import numpy as np
    import pyarrow as pa

    from twinbed.statistics.histogram import Histogram

    lasted = np.asarray(times_s, np.float64)
    if len(lasted) > most:
        return {NAME: rows("requests", host, Histogram.of(lasted), 0)}
    started = np.concatenate([[0.0], np.cumsum(lasted)[:-1]])
    return {"requests": pa.table({"host": [host] * len(lasted), "start_s": started, "total_s": lasted})}
