"""10,000 run folders: listed in at most 1 s, and read into tables and compared from nothing in at most 10 s."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.synthetic_results import planted_response, write_study

from benchmarks import Figure
from twinbed.analyses.compare.method import analysis as compare
from twinbed.results.extract import extract
from twinbed.results.store import Store
from twinbed.workloads.planted import planted

TESTBEDS = {"physical": 1.0, "container": 1.0, "virtio": 1.05, "e1000": 1.2}
CELLS, RUNS, TRIES = 100, 10_000, 3


def run() -> list[Figure]:
    """A study of 4 testbeds, 100 cells and 25 replicates, written to a temporary folder first."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        factors = {"payload": [f"{size}B" for size in range(CELLS // 2)], "offload": ["on", "off"]}
        replicates = RUNS // CELLS // len(TESTBEDS)
        write_study(folder, list(TESTBEDS), factors, replicates, planted_response(TESTBEDS, 0.02, seed=1))

        def compared() -> None:
            compare.run(extract(folder, {"planted": planted}, {}))

        def without_tables() -> None:
            shutil.rmtree(folder / "tables", ignore_errors=True)

        return [
            _figure("10,000 run folders listed", lambda: Store.open(folder), 1.0),
            _figure("10,000 run folders read and compared", compared, 10.0, without_tables),
            _figure("10,000 run folders compared again", compared, None),
        ]


def _figure(what: str, work: Callable[[], object], limit: float | None, before: Callable[[], None] = lambda: None) -> Figure:
    seconds = []
    for _ in range(TRIES):
        before()
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return Figure(what, statistics.median(seconds), (min(seconds), max(seconds)), "s", limit)
