"""What the instrument ``counters`` costs: requests/s of ab (one thread, 500 B) in containers, with it over without it.

Every pair is two whole runs, each in a lab of its own, with client and server pinned to CPUs of their own; which comes first
alternates, so that a drift favours neither.  The value is the median over pairs, in percent lost; the range its 95 % interval
from order statistics.

The processor time of its snapshots is measured too, on this machine with all that it reads there: what it takes of one CPU
once a second at the machine and at two hosts.  That can still be told where the machine is busy with something else.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import Figure
from twinbed import design
from twinbed.contracts.site import Site
from twinbed.image import build, find, probe_path
from twinbed.lab.execution import Outcome, execute
from twinbed.registry import PLUGINS, catalogue
from twinbed.study.loading import load
from twinbed.study.run import Run

PAIRS = 20
CONFIDENCE = 0.95
LIMIT_PERCENT = 1.0
SNAPSHOT_STEP_S = 0.01
SNAPSHOTS = 300
PLACES = 3
STUDY = """
study: counters
testbeds: {container: {driver: container, cpus: auto}}
workload: {kind: http, tool: ab, payload: 500B, duration: 3s, max_requests: 10000000}
factors: {instruments: [none, counters]}
replicates: 1
order: sequential
"""


def run() -> list[Figure]:
    without, beside = design.runs(load(STUDY, "counters.yaml", catalogue()))
    rates: dict[str, list[float]] = {without.id: [], beside.id: []}
    for number in range(PAIRS):
        for one in (without, beside) if number % 2 else (beside, without):
            rates[one.id].append(_rate(one))
    lost = sorted(100 * (1 - seen / alone) for seen, alone in zip(rates[beside.id], rates[without.id], strict=True))
    low, high = _interval(lost)
    alone = rates[without.id]
    return [
        Figure("ab 500 B in containers, no instrument", statistics.median(alone), (min(alone), max(alone)), "requests/s"),
        Figure("  lost to counters", statistics.median(lost), (low, high), "%", LIMIT_PERCENT),
        _processor(),
    ]


def _processor() -> Figure:
    """Percent of one CPU that one snapshot a second at each place takes: a probe's processor time over its snapshots."""
    taken = sorted(100 * PLACES * _snapshot_s() for _ in range(5))
    return Figure("  a CPU's time taken by counters", statistics.median(taken), (taken[0], taken[-1]), "%", LIMIT_PERCENT)


def _snapshot_s() -> float:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        out = Path(folder) / "counters.snap"
        argv = [str(probe_path()), "counters", "--out", str(out), "--interval", str(SNAPSHOT_STEP_S)]
        argv += ["--net", "--kernel", "--softnet", "--kmsg"]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        while not out.exists() or _snapshots(out) < SNAPSHOTS:
            assert process.poll() is None, argv
            time.sleep(0.1)
        process.terminate()
        _, _, used = os.wait4(process.pid, 0)
        return float(used.ru_utime + used.ru_stime) / _snapshots(out)


def _snapshots(out: Path) -> int:
    return out.read_bytes().count(b"\n@ ") + 1


def _rate(one: Run) -> float:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        cpus = tuple(sorted(os.sched_getaffinity(0)))
        site = Site(one.id, probe_path(), find() or build(), Path(folder) / "artifacts", cpus)
        execute(one, PLUGINS, site, Outcome(), lambda _: None)
        workload = PLUGINS.workloads[one.workload.kind]
        values = workload.parse(one.workload.params, site.artifacts).values
    return float(next(value.value for value in values if value.metric == workload.rate and not value.host))


def _interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Of the median, from order statistics: the tightest symmetric pair whose binomial coverage is enough."""
    n = len(ordered)
    inside = [sum(math.comb(n, i) for i in range(k, n - k + 1)) / 2**n for k in range(1, n // 2 + 1)]
    k = max((k for k, covered in enumerate(inside, start=1) if covered >= CONFIDENCE), default=1)
    return ordered[k - 1], ordered[n - k]
