"""200,000 runs that were published: opened and compared in a process of its own. Planted values, made by
``benchmarks.big_results``.

``python -m benchmarks.bench_big RUNS FOLDER`` measures as many as you like: a million are made in some minutes and stay in
FOLDER, where the same command finds them again.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks import Figure
from benchmarks.big_results import RATIOS, publish
from twinbed.analyses.compare.method import analysis as compare
from twinbed.results.bucket.address import Address, address_of
from twinbed.results.store import Store

RUNS = 200_000
MILLION = 1_000_000
OPENED_S, COMPARED_S, MEMORY_MIB = 3.0, 60.0, 4096.0
"""What is promised of a million runs; of fewer in proportion, but no less than ``LEAST`` of it, as there is what any result
takes: imports, and the resamples of a bootstrap."""
LEAST = 0.4
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Took:
    """Seconds on the clock, and of processors."""

    wall: float
    cpu: float


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        return figures(publish(RUNS, Path(name)), RUNS)


def figures(address: Address, runs: int) -> list[Figure]:
    """Processor seconds, since other programs' work is none of twinbed's; the spread is to the seconds on the clock."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        opening, comparing, memory, rates, off = own.submit(_measured, address).result()
    share = max(LEAST, runs / MILLION)

    def took(what: str, each: _Took, limit: float) -> Figure:
        return Figure(f"{runs:,} published runs {what}", each.cpu, (each.cpu, each.wall), "s of CPU", limit * share)

    return [
        took("opened", opening, OPENED_S),
        took("compared", comparing, COMPARED_S),
        Figure("    memory, at most", memory, (memory, memory), "MiB", MEMORY_MIB * share),
        Figure(f"    farthest of {rates} ratios from what was planted", off, (off, off), ""),
    ]


def _measured(address: Address) -> tuple[_Took, _Took, float, int, float]:
    Store.open(address)  # imports
    opening, store = _timed(lambda: Store.open(address).as_it_stands())
    comparing, result = _timed(lambda: compare.run(store))
    rates = [each for each in result.comparisons if each.metric == "requests_per_second" and each.ratio is not None]
    off = max(abs(each.ratio / RATIOS[each.testbed] - 1) for each in rates if each.ratio)
    return opening, comparing, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(rates), off


def _timed(work: Callable[[], T]) -> tuple[_Took, T]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return _Took(time.perf_counter() - wall, time.process_time() - cpu), result


def main(runs: int, folder: Path) -> int:
    there = address_of(f"file://{folder.absolute()}") if (folder / "snapshots").is_dir() else publish(runs, folder)
    assert there
    measured = figures(there, runs)
    for each in measured:
        limit = "" if each.limit is None else f", at most {each.limit:g}"
        sys.stdout.write(f"{each.what}: {each.value:.3g} (to {each.spread[1]:.3g}) {each.unit}{limit}\n")
    return 0 if all(each.kept for each in measured) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
