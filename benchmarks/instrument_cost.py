"""What an instrument takes of a workload: whole runs with it and without it, side by side.

Every pair is two runs, each in a lab of its own, with client and server pinned to CPUs of their own; which comes first
alternates, so that a drift favours neither.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twinbed import design
from twinbed.contracts.site import Site
from twinbed.image import build, find, probe_path
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

CONFIDENCE = 0.95


def side_by_side(study: str, pairs: int) -> tuple[list[float], list[float]]:
    """The rates without it, and the percent lost with it in each pair, sorted. The study's cells: without, and with."""
    without, beside = design.runs(load(study, "cost.yaml", catalogue()))
    rates: dict[str, list[float]] = {without.id: [], beside.id: []}
    for number in range(pairs):
        for one in (without, beside) if number % 2 else (beside, without):
            rates[one.id].append(rate(one))
    lost = [100 * (1 - seen / alone) for seen, alone in zip(rates[beside.id], rates[without.id], strict=True)]
    return sorted(rates[without.id]), sorted(lost)


def rate(one: Run) -> float:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        site = Site(one.id, probe_path(), find() or build(), Path(folder) / "artifacts", cpus)
        execute(one, PLUGINS, site, Outcome(), lambda _: None)
        workload = PLUGINS.workloads[one.workload.kind]
        values = workload.parse(one.workload.params, site.artifacts).values
    return float(next(value.value for value in values if value.metric == workload.rate and not value.host))


def interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Of the median, from order statistics: the tightest symmetric pair whose binomial coverage is enough."""
    n = len(ordered)
    inside = [sum(math.comb(n, i) for i in range(k, n - k + 1)) / 2**n for k in range(1, n // 2 + 1)]
    k = max((k for k, covered in enumerate(inside, start=1) if covered >= CONFIDENCE), default=1)
    return ordered[k - 1], ordered[n - k]
