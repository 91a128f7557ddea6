"""10 million requests of one run, as ``ab -g`` writes them: read into a histogram, beside pyarrow reading the same rows.

The histogram's memory and its size on disk do not grow with the number of requests.
"""

from __future__ import annotations

import io
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from benchmarks import Figure
from twinbed.readers import ab_requests

TRIES = 5
REQUESTS = 10_000_000
BLOCK = 500_000
HEADING = "starttime\tseconds\tctime\tdtime\tttime\twait\n"


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        short, long = Path(folder) / "short.tsv", Path(folder) / "long.tsv"
        for path, count in ((short, REQUESTS // 10), (long, REQUESTS)):
            _write(path, count)
        figures = [_memory(short, long)]
        own, peer = [], []
        for _ in range(TRIES):
            own.append(_seconds(lambda: ab_requests.read(long, "client")))
            peer.append(_seconds(lambda: _rows(long)))
        times_as_long = [one / other for one, other in zip(own, peer, strict=True)]
        figures += [
            Figure(f"{REQUESTS:,} requests of ab's to a histogram", statistics.median(own), (min(own), max(own)), "s"),
            Figure(
                "the same, times as long as pyarrow", statistics.median(times_as_long), _range(times_as_long), "", limit=3.0
            ),
        ]
        kept = _stored(ab_requests.read(long, "client")["latencies"]) / 1000
        rows = _stored(_rows(long)) / 1000
        figures.append(Figure("the histogram on disk", kept, (kept, kept), "kB", limit=100.0))
        figures.append(Figure("the rows on disk", rows, (rows, rows), "kB"))
        return figures


def _write(path: Path, count: int) -> None:
    noise = np.random.default_rng(1)
    with path.open("w") as file:
        file.write(HEADING)
        for done in range(0, count, BLOCK):
            times = noise.lognormal(3.5, 1.2, min(BLOCK, count - done)).astype(int)
            file.writelines(f"Mon Nov 23 09:00:00 2026\t1700000000\t1\t{each}\t{each + 1}\t{each}\n" for each in times)


def _rows(path: Path) -> pa.Table:
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"))


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _range(values: list[float]) -> tuple[float, float]:
    return min(values), max(values)


def _stored(table: pa.Table) -> int:
    into = io.BytesIO()
    pq.write_table(table, into, compression="zstd")
    return len(into.getvalue())


def _memory(short: Path, long: Path) -> Figure:
    """How much a file ten times as long adds to the peak, each read by a process of its own."""
    one, ten = (_peak(path) for path in (short, long))
    added = (ten - one) / 1024
    return Figure("memory that 10 times the requests add", added, (added, added), "MiB", limit=100.0)


def _peak(path: Path) -> float:
    """Of a process that reads a file, in KiB."""
    code = (
        "import resource, sys; from pathlib import Path; from twinbed.readers import ab_requests; "
        "ab_requests.read(Path(sys.argv[1]), 'client', most=0); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)
