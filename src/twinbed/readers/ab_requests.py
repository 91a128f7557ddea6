"""Output of ``ab -g``, a row a request; of very many requests the histogram alone, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from twinbed import _core
from twinbed.readers.latencies import MOST_ROWS, NAME, rows

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 16 << 20


def read(file: Path, host: str, most: int = MOST_ROWS) -> dict[str, pa.Table]:
    """Return ``requests``, or ``latencies`` of more than ``most``. Raises OSError or ValueError where it cannot be read."""
    import numpy as np
    import pyarrow as pa

    from twinbed.statistics.histogram import Histogram

    kept: list[pa.Table] = []
    parts: list[Histogram] = []
    count = 0
    for block in _blocks(file):
        table = _core.ab_requests(block)
        count += table.num_rows
        kept = [*kept, table] if count <= most else []
        parts = [Histogram.together([*parts, Histogram.of(np.asarray(table["total_s"]))])]
    if count > most:
        return {NAME: rows("requests", host, parts[0], 0)}
    table = pa.concat_tables(kept)
    return {"requests": table.add_column(0, "host", pa.array([host] * table.num_rows, pa.string()))}


def _blocks(file: Path) -> Iterator[bytes]:
    """Yield whole lines, the heading before each block."""
    with file.open("rb") as stream:
        heading = stream.readline()
        rest = b""
        first = True
        while block := stream.read(BLOCK_BYTES):
            lines, newline, left = (rest + block).rpartition(b"\n")
            rest = left if newline else rest + block
            if newline:
                yield heading + lines + newline
                first = False
        if rest or first:
            yield heading + rest
