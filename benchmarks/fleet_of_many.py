"""A fleet of a thousand machines in a few processes: what the scheduler and the controller are busy with, and from where on.

``python -m benchmarks.fleet_of_many [--machines 1000] [--runs 3] [--seconds 60]``. The scheduler is dask's, in a process of
its own, and so is the controller, which is `twinbed run`. Machines are dask's workers, many in a process, each with a name and
a cache of its own; what they make are runs of the fake driver, which last as long as ``--seconds`` says and take the members'
real way: tried, made, synced, fetched by digest, forgotten. All of them share the CPUs of this one, so that joining takes
longer than it would.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.machines import Fleet, events

STUDY = """
study: many
testbeds: {a: {driver: fake, seed: 1}, b: {driver: fake, seed: 2, ratio: 1.2}}
workload: {kind: planted, seconds: SECONDSs}
factors: {testbed: [a, b]}
replicates: REPLICATES
"""
HOSTS = 2
"""Processes with workers in them."""
SHARED = {
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "10s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__DISK": "False",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_LOGGING__DISTRIBUTED": "warning",
}
"""Of those processes. A worker looks at its own loop every 20 ms and at its machine every 500 ms: hundreds in one process would
do nothing else."""


async def _members(scheduler: str, first: int, count: int, caches: Path) -> None:
    """Workers in this process, until it is ended."""
    import distributed

    from twinbed.fleet import member

    # A member's name and cache are those of its machine; here a machine is a worker.
    member.name = lambda: str(distributed.get_worker().name)
    member.cache_root = lambda: caches / member.name()
    workers = [
        distributed.Worker(
            scheduler,
            nthreads=1,
            name=f"m{number}",
            resources={"lab": 1},
            host="127.0.0.1",
            dashboard=False,
            local_directory=str(caches / "dask"),
        )
        for number in range(first, first + count)
    ]
    for some in range(0, count, 20):
        await asyncio.gather(*workers[some : some + 20])
    sys.stdout.write("all there\n")
    sys.stdout.flush()
    await asyncio.gather(*(each.finished() for each in workers))


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(machines: int, runs: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as name:
        folder = Path(name)
        study, results = folder / "many.yaml", folder / "results"
        study.write_text(STUDY.replace("SECONDS", f"{seconds:g}").replace("REPLICATES", str(machines * runs // 2)))
        fleet = Fleet(folder)
        hosts: list[subprocess.Popen[str]] = []
        try:
            fleet.scheduler()
            each = machines // HOSTS
            hosts += [
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.fleet_of_many", "--of", fleet.address, str(at * each), str(each), name],
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | SHARED,
                )
                for at in range(HOSTS)
            ]
            begin = time.monotonic()
            for host in hosts:
                assert host.stdout and host.stdout.readline() == "all there\n"
            sys.stdout.write(f"{machines:,} workers there after {time.monotonic() - begin:.0f} s\n")
            argv = [sys.executable, "-m", "twinbed.cli.main", "run", str(study), "-o", str(results), "--no-report", "-q"]
            controller = subprocess.Popen([*argv, "--on", fleet.address])
            _watch(psutil.Process(fleet.processes["scheduler"].pid), psutil.Process(controller.pid), results, machines)
            if code := controller.wait():
                raise SystemExit(f"twinbed run ended with {code}")
            planned = machines * runs // 2 * 2
            assert len(list((results / "runs").iterdir())) == planned
            _tell(results, planned)
        finally:
            for host in hosts:
                host.kill()
                host.wait()
            fleet.end()


def _watch(scheduler: psutil.Process, controller: psutil.Process, results: Path, machines: int) -> None:
    """From when all machines have joined to the end of the command, whose comparison is the controller's too."""
    begin = time.monotonic()
    while _count(results, "joined") < machines and controller.is_running() and controller.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.5)
    sys.stdout.write(f"all tried and joined after {time.monotonic() - begin:.0f} s\n")
    begin, made = time.monotonic(), _count(results, "status")
    before = [_cpu_s(scheduler), _cpu_s(controller)]
    after, end = before, begin
    while controller.status() != psutil.STATUS_ZOMBIE:
        try:
            after, end = [_cpu_s(scheduler), _cpu_s(controller)], time.monotonic()
        except psutil.Error:
            break
        time.sleep(0.5)
    of = _count(results, "status") - made
    for what, one, other in zip(("scheduler", "controller"), before, after, strict=True):
        cpu_s = other - one
        sys.stdout.write(f"{what}: {1e3 * cpu_s / of:.1f} ms of CPU a run, busy for {cpu_s / (end - begin):.0%} of the time\n")
    sys.stdout.write(f"{of:,} runs in {end - begin:.0f} s: {of / (end - begin):.1f} a second\n")


def _count(results: Path, what: str) -> int:
    return sum(what in each for each in events(results))


def _tell(results: Path, planned: int) -> None:
    ends = [float(str(each["time_s"])) for each in events(results) if "status" in each]
    sys.stdout.write(f"{planned:,} runs, each once; the first and the last {ends[-1] - ends[0]:.0f} s apart\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3, help="of each machine")
    parser.add_argument("--seconds", type=float, default=60.0, help="that a run lasts")
    parser.add_argument("--of", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.of:
        scheduler, first, count, folder = asked.of
        os.environ["TWINBED_CACHE"] = folder
        asyncio.run(_members(scheduler, int(first), int(count), Path(folder)))
    else:
        measure(asked.machines, asked.runs, asked.seconds)


if __name__ == "__main__":
    main()
