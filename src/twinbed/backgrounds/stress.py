"""Background load ``stress``: workers that keep the machine or hosts busy during the workload.

Runs ``stress-ng`` 0.13 or newer: ``cpu`` workers compute, ``io`` workers have the kernel write its caches to disk (sync(2)),
``memory`` workers map, write and unmap memory over and over.  Level 0 of all of them runs nothing.

Its metrics are the workers' speed in stress-ng's own ("bogo") operations. They compare levels or runs, but mean nothing across
versions of stress-ng.

Limits: containers share the machine's CPUs and disks, so one host's workers take them from other hosts.  A host with little
memory ends memory workers; stress-ng starts them again.
Source: stress-ng(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from twinbed.contracts.background import Background, BackgroundPlan
from twinbed.contracts.command import PROGRAM_BYTES, Command, Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.params import BackgroundParams
from twinbed.contracts.place import Places
from twinbed.metrics.background import STRESS_METRICS
from twinbed.metrics.metric import Value
from twinbed.model.units import Size

PROGRAM = "stress-ng"
ARTIFACT = f"{PROGRAM}.out.err"
"""stress-ng prints everything on standard error."""
MOST_WORKERS = 1024
READY_LIMIT_S = 30.0
STOP_LIMIT_S = 30.0
"""Time for stress-ng to wait for its workers, which may be in a sync(2)."""

STRESSORS = {"cpu": "cpu", "io": "io", "memory": "vm"}
"""Setting -> stress-ng's name."""

_DISPATCHED = re.compile(r"dispatching hogs: (.*)")
_WORKERS = re.compile(r"(\d+) ([\w-]+)")
_MEASURED = r"^stress-ng: \w+: +\[\d+\] {stressor} +(\d+) +(\d+\.\d+) "


class StressParams(BackgroundParams):
    """Settings of the number and place of workers."""

    cpu: int = Field(0, ge=0, le=MOST_WORKERS, examples=[2], description="workers that compute, at each place")
    io: int = Field(0, ge=0, le=MOST_WORKERS, examples=[2], description="workers that write caches to disk, at each place")
    memory: int = Field(0, ge=0, le=MOST_WORKERS, examples=[1], description="workers that write memory, at each place")
    memory_size: Size = Field(64 * 2**20, ge=2**20, le=2**40, description="memory of each memory worker, such as 64MiB")
    where: Literal["machine", "hosts", "clients", "servers"] = Field(
        "machine", description="the machine that carries the testbed, every host, or those of one role"
    )

    def workers(self) -> Mapping[str, int]:
        """Return stress-ng's name -> number of workers, where there are any."""
        return {stressor: getattr(self, setting) for setting, stressor in STRESSORS.items() if getattr(self, setting)}

    def programs(self) -> Sequence[str]:
        """Return the programs that hosts must have installed."""
        return (PROGRAM,) if self.workers() and self.where != "machine" else ()

    def machine_programs(self) -> Sequence[str]:
        """Return the programs that the machine must have installed."""
        return (PROGRAM,) if self.workers() and self.where == "machine" else ()

    def estimate_seconds(self) -> float:
        return 0.2 if self.workers() else 0.0


class Stress(Background[StressParams]):
    """The background load."""

    name = "stress"
    params = StressParams
    summary = "workers that keep CPUs, disks and memory busy during the workload (stress-ng)"
    also = ("stress_ng", "cpu", "load", "noise")
    files = ("stress-ng.*",)
    metrics = tuple(STRESS_METRICS.values())
    # Without ``io``: sync(2) would have the whole machine write its caches.
    trials: Mapping[str, StressParams] = MappingProxyType(
        {f"where: {where}": StressParams(cpu=1, memory=1, memory_size=2**20, where=where) for where in ("machine", "hosts")}
    )

    def plan(self, params: StressParams, places: Places) -> BackgroundPlan:
        workers = params.workers()
        if not workers:
            return BackgroundPlan()
        argv = [PROGRAM, "--timeout", "0", "--metrics", "--temp-path", "{artifacts}"]
        for stressor, number in workers.items():
            argv += [f"--{stressor}", str(number)]
        if params.memory:
            # stress-ng divides this among the workers.
            argv += ["--vm-bytes", str(params.memory * params.memory_size)]
        # Memory workers are two processes each: one that works, and one that starts it again.
        processes = 1 + sum(workers.values()) + params.memory
        return BackgroundPlan(
            commands=[
                Command(
                    name,
                    tuple(argv),
                    ready=Ready(says=b"dispatching hogs"),
                    limit_s=READY_LIMIT_S,
                    stop_limit_s=STOP_LIMIT_S,
                    memory_bytes=params.memory * params.memory_size + processes * PROGRAM_BYTES,
                    tasks=processes + 1,
                )
                for name in _names(params.where, places)
            ]
        )

    def extract(self, params: StressParams, artifacts: Path) -> Extracted:
        files = sorted(artifacts.glob(f"*/{ARTIFACT}"))
        if not files and params.workers():
            raise FileNotFoundError(f"no {ARTIFACT} in {artifacts}")
        return Extracted([value for file in files for value in _values(params, file)])


def _names(where: str, places: Places) -> Sequence[str]:
    clients, servers = ([pair[end] for pair in places.pairs] for end in (0, 1))
    return list({"machine": places.machines, "hosts": [*clients, *servers], "clients": clients, "servers": servers}[where])


def _values(params: StressParams, file: Path) -> Iterator[Value]:
    """Yield the values of one place. Raises ValueError where stress-ng started other workers than asked, or has no result."""
    text = file.read_text(errors="replace")
    place = f"{file.parent.name}/{file.name}"
    dispatched = _DISPATCHED.search(text)
    started = {stressor: number for number, stressor in _WORKERS.findall(dispatched[1])} if dispatched else {}
    asked = {stressor: str(number) for stressor, number in params.workers().items()}
    if started != asked:
        raise ValueError(f"{place}: asked for {asked}, but stress-ng says {dispatched[0] if dispatched else text[:200]!r}")
    for setting, stressor in STRESSORS.items():
        if not getattr(params, setting):
            continue
        metric = STRESS_METRICS[setting]
        measured = re.search(_MEASURED.format(stressor=stressor), text, re.MULTILINE)
        if measured is None:
            raise ValueError(f"{place}: no result of the {stressor} workers: {text[-200:]!r}")
        operations, seconds = int(measured[1]), float(measured[2])
        yield Value(metric.name, operations / seconds if seconds else None, metric.unit, file.parent.name)


stress = Stress()
