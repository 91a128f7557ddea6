"""What the instrument ``counters`` costs: requests/s of ab (one thread, 500 B) in containers, with it over without it.

The value is the median over pairs of runs (``instrument_cost``), in percent lost; the range its 95 % interval from order
statistics.

What its times of wake-ups lose is measured in the same way, over counters without them (``wake_ups: false``).

The processor time of its snapshots is measured too, on this machine with all that it reads there: what it takes of one CPU
once a second at the machine and at two hosts.  That can still be told where the machine is busy with something else.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import Figure
from benchmarks.instrument_cost import interval, side_by_side
from twinbed.image import probe_path

PAIRS = 20
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
WAKE_UPS = STUDY.replace("instruments: [none, counters]", "instruments.counters.wake_ups: [false, true]").replace(
    "replicates: 1", "instruments: [counters]\nreplicates: 1"
)


def run() -> list[Figure]:
    alone, lost = side_by_side(STUDY, PAIRS)
    _, to_wake_ups = side_by_side(WAKE_UPS, PAIRS)
    return [
        Figure("ab 500 B in containers, no instrument", statistics.median(alone), (alone[0], alone[-1]), "requests/s"),
        Figure("  lost to counters", statistics.median(lost), interval(lost), "%", LIMIT_PERCENT),
        Figure("  lost to its times of wake-ups", statistics.median(to_wake_ups), interval(to_wake_ups), "%", LIMIT_PERCENT),
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
