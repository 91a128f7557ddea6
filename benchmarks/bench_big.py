"""100,000 runs that were published: opened, and compared. Planted values, made by ``benchmarks.big_results``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import Figure
from benchmarks.big_results import RATIOS, publish
from twinbed.analyses.compare.analysis import analysis as compare
from twinbed.results.store import Store

RUNS = 100_000


def run() -> list[Figure]:
    """Processor seconds, since other programs' work is none of twinbed's; and how far the ratios are from what was planted."""
    with tempfile.TemporaryDirectory() as name:
        address = publish(RUNS, Path(name))
        Store.open(address)  # imports
        opening, store = _timed(lambda: Store.open(address).as_it_stands())
        comparing, result = _timed(lambda: compare.run(store))
    rates = [each for each in result.comparisons if each.metric == "requests_per_second" and each.ratio is not None]
    off = max(abs(each.ratio / RATIOS[each.testbed] - 1) for each in rates if each.ratio)
    return [
        Figure(f"{RUNS:,} published runs opened", opening, (opening, opening), "s of CPU"),
        Figure(f"{RUNS:,} published runs compared", comparing, (comparing, comparing), "s of CPU"),
        Figure(f"farthest of {len(rates)} ratios from what was planted", off, (off, off), ""),
    ]


def _timed(work):  # type: ignore[no-untyped-def]
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
