"""Comparisons of values far from normal, each with a bootstrap: judged by one process, and by one for each CPU, in turn.

``python -m benchmarks.bench_judging COMPARISONS`` takes as many as you like; 8,000 need ten minutes of a processor.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import Figure
from benchmarks.big_results import RATIOS, publish
from twinbed.analyses.compare.method import analysis as compare
from twinbed.executor import opened
from twinbed.model.comparison import Comparisons
from twinbed.results.bucket.address import Address
from twinbed.results.store import Store

COMPARISONS, REPLICATES, TRIES = 1_000, 30, 3
A_CELL = 6 * (len(RATIOS) - 1)
"""Comparisons: six metrics of each testbed but the reference. Four of the metrics vary."""


@dataclass(frozen=True, slots=True)
class _Took:
    """Seconds on the clock, of this process's CPU, and of its workers'."""

    wall: float
    own: float
    workers: float

    @property
    def cpu(self) -> float:
        return self.own + self.workers


def run() -> list[Figure]:
    return figures(COMPARISONS)


def figures(comparisons: int) -> list[Figure]:
    cells = -(-comparisons // A_CELL)
    with tempfile.TemporaryDirectory() as name:
        address = publish(cells * len(RATIOS) * REPLICATES, Path(name), cells, skewed=True)
        there, bootstrapped, alone, together = _measured(address)
    cpus = len(os.sched_getaffinity(0))
    what = f"{there:,} comparisons of {REPLICATES} values a side, {bootstrapped:,} with a bootstrap"
    times = [one.wall / many.wall for one, many in zip(alone, together, strict=True)]
    dearer = [many.cpu / one.cpu for one, many in zip(alone, together, strict=True)]
    handed_out = [100 * each.workers / each.cpu for each in together]
    return [
        _figure(f"{what}: one process", [each.wall for each in alone], "s"),
        _figure(f"    the same, {cpus} processes", [each.wall for each in together], "s"),
        _figure("    times as fast", times, ""),
        _figure("    times the processors' time", dearer, ""),
        _figure("    of which by workers", handed_out, "%"),
    ]


def _figure(what: str, values: list[float], unit: str) -> Figure:
    return Figure(what, statistics.median(values), (min(values), max(values)), unit)


def _measured(address: Address) -> tuple[int, int, list[_Took], list[_Took]]:
    store = Store.open(address).as_it_stands()
    _timed(store, "local:1")  # imports
    alone, together = [], []
    for _ in range(TRIES):
        took, result = _timed(store, "local:1")
        alone.append(took)
        took, same = _timed(store, "local")
        together.append(took)
        if result != same:
            raise AssertionError("results depend on who judges")
    bootstrapped = sum(each.bootstrap_interval is not None for each in result.comparisons)
    return len(result.comparisons), bootstrapped, alone, together


def _timed(store: Store, on: str) -> tuple[_Took, Comparisons]:
    wall, (own, workers) = time.perf_counter(), _cpu()
    with opened(on) as executor:
        result = compare.run_on(executor, store)
    after = _cpu()
    return _Took(time.perf_counter() - wall, after[0] - own, after[1] - workers), result


def _cpu() -> tuple[float, float]:
    """Of this process, and of its children that have ended."""
    own, workers = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime, workers.ru_utime + workers.ru_stime


if __name__ == "__main__":
    for each in figures(int(sys.argv[1])):
        sys.stdout.write(f"{each.what}: {each.value:.3g} ({each.spread[0]:.3g} to {each.spread[1]:.3g}) {each.unit}\n")
