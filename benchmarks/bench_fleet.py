"""A fleet of machines on this one: what it costs a run, what becomes of a study whose machine and scheduler die, and how
much faster two workers read artifacts than one.

Overhead: the same study made here and by a fleet of one machine, alternating; a run's time is that from the end of the first
run to the end of the last, divided by the runs between. Sixty runs of containers on three machines: one is killed, then the
scheduler; verdicts are held against what the study planted (half the link rate halves the requests; the testbeds are alike).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import Figure, twinbed
from benchmarks.machines import Fleet, events, made, meanwhile

TRIES = 3
OVERHEAD = """
study: overhead
testbeds: {a: {driver: container}, b: {driver: container}}
workload: {kind: http, duration: 1s, threads: 1}
factors: {testbed: [a, b]}
replicates: 5
"""
SIXTY = """
study: sixty
testbeds: {a: {driver: container}, b: {driver: container}}
workload: {kind: http, payload: 1MiB, duration: 1s, threads: 1}
factors: {testbed: [a, b], topology.link.rate: [100mbit, 50mbit]}
replicates: 15
"""
MACHINES = ("m1", "m2", "m3")
CAPTURED = """
study: captured
testbeds: {a: {driver: container}}
workload: {kind: http, duration: 1s, threads: 1, max_requests: 500}
instruments: [packets, counters, syscalls]
replicates: 10
"""
READING = """
import sys, time
from pathlib import Path
from twinbed import registry
from twinbed.executor.local import Processes
from twinbed.results.extract import extract

begin, plugins = time.monotonic(), registry.PLUGINS
extract(Path(sys.argv[1]), plugins.workloads, plugins.accompanying, executor=Processes(int(sys.argv[2])))
print(time.monotonic() - begin)
"""
READ = 2000
"""Runs whose artifacts are read."""


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as name:
        folder = Path(name)
        return [*_overhead(folder), *_sixty(folder), *_reading(folder)]


def _overhead(folder: Path) -> list[Figure]:
    study = folder / "overhead.yaml"
    study.write_text(OVERHEAD)
    fleet = Fleet(folder / "one")
    fleet.folder.mkdir()
    found: list[float] = []
    try:
        fleet.scheduler()
        fleet.machine("m1")
        for number in range(TRIES):
            here, there = folder / f"here-{number}", folder / f"there-{number}"
            twinbed("run", str(study), "-o", str(here), "--no-report")
            twinbed("run", str(study), "-o", str(there), "--no-report", "--on", fleet.address)
            found.append(_a_run_s(there) - _a_run_s(here))
    finally:
        fleet.end()
    spread = (min(found), max(found))
    return [Figure("seconds more that a run takes on a fleet of one machine", statistics.median(found), spread, "s", 0.3)]


def _a_run_s(results: Path) -> float:
    ends = [float(str(each["time_s"])) for each in events(results) if "status" in each]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def _sixty(folder: Path) -> list[Figure]:
    study, results = folder / "sixty.yaml", folder / "sixty"
    study.write_text(SIXTY)
    fleet = Fleet(folder / "three")
    fleet.folder.mkdir()
    asked = ("run", str(study), "-o", str(results), "--no-report", "--on", fleet.address)
    begin = time.monotonic()
    try:
        _start(fleet)
        with (
            meanwhile(lambda: len(made(results)) >= 15, lambda: fleet.kill("m2")),
            meanwhile(lambda: len(made(results)) >= 30, lambda: fleet.kill("scheduler")),
        ):
            twinbed(*asked, allowed=(1,))
        for name in list(fleet.processes):
            fleet.kill(name)
        _start(fleet)
        twinbed(*asked)
    finally:
        fleet.end()
    took_s = time.monotonic() - begin
    planned = json.loads((results / "study.json").read_text())["runs"]
    records = [json.loads(path.read_text()) for path in (results / "runs").glob("*/run.json")]
    assert sorted(each["id"] for each in records) == sorted(each["id"] for each in planned)
    assert all(each["status"] == "complete" for each in records)
    machines: dict[int, set[str]] = {}
    for each in records:
        machines.setdefault(each["block"], set()).add(each["machine"])
    assert all(len(of_block) == 1 for of_block in machines.values()), machines
    alike, halved = _compared(results), _compared(results, "--by", "topology.link.rate")
    assert alike and all(each["verdict"] != "different" for each in alike), alike
    assert halved and all(each["verdict"] == "different" for each in halved), halved
    off = max(abs(each["ratio"] - 1) for each in alike)
    ratios = [each["ratio"] for each in halved]
    return [
        Figure("60 container runs on three machines, one killed, the scheduler too", took_s, (took_s, took_s), "s"),
        Figure("farthest of the ratios of testbeds that are alike from 1", off, (off, off), ""),
        Figure("ratio of requests at half the rate", statistics.median(ratios), (min(ratios), max(ratios)), ""),
        Figure("runs made in vain", made_twice := len(made(results)) - len(records), (made_twice, made_twice), ""),
    ]


def _compared(results: Path, *options: str) -> list[dict[str, Any]]:
    said = twinbed("compare", str(results), "--json", "--metric", "requests_per_second", *options, allowed=(0, 4, 5))
    found: list[dict[str, Any]] = json.loads(said)["result"]["comparisons"]
    return found


def _start(fleet: Fleet) -> None:
    fleet.scheduler()
    for name in MACHINES:
        fleet.machine(name)


def _reading(folder: Path) -> list[Figure]:
    """One process against two, of this machine; each reads all anew."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    study, results = folder / "captured.yaml", folder / "captured"
    study.write_text(CAPTURED)
    twinbed("run", str(study), "-o", str(results), "--no-report")
    _copied(results / "runs", READ)
    one, two = (_read_s(results, workers, cpus) for workers in (1, 2))
    what = f"speed of two workers that read {READ:,} runs, as a share of twice that of one"
    share = one / two / 2
    return [Figure(what, share, (share, share), "", least=0.9)]


def _copied(runs: Path, count: int) -> None:
    """More runs of the same artifacts, as links: other runs to whoever reads them."""
    there = sorted(path for path in runs.iterdir())
    for number in range(len(there), count):
        source, copy = there[number % len(there)], runs / f"{number:010x}"
        shutil.copytree(source, copy, copy_function=os.link)
        (copy / "run.json").unlink()
        record = json.loads((source / "run.json").read_text())
        record |= {"id": copy.name, "replicate": number + 1, "position": number}
        (copy / "run.json").write_text(json.dumps(record))


def _read_s(results: Path, workers: int, cpus: list[int]) -> float:
    for part in (results / "tables").rglob("*.parquet"):
        part.unlink()
    # A CPU for each: a worker by itself reads large runs with as many threads as there are CPUs.
    argv = ["taskset", "-c", ",".join(map(str, cpus[:workers])), sys.executable, "-c", READING, str(results), str(workers)]
    return float(subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout)
