"""How long a study takes on a fleet: arithmetic, and a simulation that it is held against.

A machine makes a run (``run_s``), alone; then the run passes two places that all machines share: the scheduler, which handles
its tasks, and the controller, which takes its bytes over one link and writes them. The next run of that machine begins when
that is over. This is a closed queueing network of M customers with a delay (the machines) and two servers; its throughput X(M)
is that of mean value analysis (Reiser and Lavenberg 1980, J. ACM 27:313), exact where times are exponential, and never above
min(M / (sum of all times), 1 / the longest of both services) (Denning and Buzen 1978, ACM Comput. Surv. 10:225). A study of R
runs takes R / X(M) and, since whole blocks are made, at least as long as the blocks of the busiest machine.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

SCHEDULER_S = 3 * 2.5e-3
"""Of a run: three tasks. Measured: 2.3 to 2.5 ms of CPU a task of distributed 2026.8, on a busy machine."""
WRITE_S = 20e-3
"""Of a run: the controller's own work, synced to disk."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``link`` is the controller's, in bit/s; ``cells`` the runs of a block."""

    runs: int
    cells: int
    run_s: float
    run_bytes: float
    link: float = 1e9
    scheduler_s: float = SCHEDULER_S
    write_s: float = WRITE_S

    @property
    def controller_s(self) -> float:
        return self.write_s + 8 * self.run_bytes / self.link

    @property
    def limit(self) -> str:
        """What is full first as machines are added, and at how many."""
        slowest = max(self.controller_s, self.scheduler_s)
        name = "scheduler" if slowest == self.scheduler_s else "link" if slowest > 2 * self.write_s else "disk"
        return f"{name}, from {math.ceil((self.run_s + self.controller_s + self.scheduler_s) / slowest):,}"


def throughput(plan: Plan, machines: int) -> float:
    """Runs a second, by mean value analysis."""
    queues = [0.0, 0.0]
    services = (plan.scheduler_s, plan.controller_s)
    rate = 0.0
    for population in range(1, machines + 1):
        times = [service * (1 + queue) for service, queue in zip(services, queues, strict=True)]
        rate = population / (plan.run_s + sum(times))
        queues = [rate * time for time in times]
    return rate


def bound(plan: Plan, machines: int) -> float:
    """Runs a second, at most."""
    services = (plan.scheduler_s, plan.controller_s)
    return min(machines / (plan.run_s + sum(services)), 1 / max(services))


def seconds(plan: Plan, machines: int) -> float:
    """The whole study."""
    blocks = math.ceil(plan.runs / plan.cells)
    busiest = math.ceil(blocks / machines) * plan.cells * (plan.run_s + plan.scheduler_s + plan.controller_s)
    return max(plan.runs / throughput(plan, min(machines, blocks)), busiest)


def simulated(plan: Plan, machines: int, *, seed: int, exponential: bool = False) -> tuple[float, float]:
    """(seconds of the whole study, share of it in which the scheduler is at work), run by run. Times are exponential, or those
    of runs vary by 10 % and the others not at all."""
    noise = np.random.default_rng(seed)

    def drawn(mean: float, spread: float) -> float:
        if exponential:
            return float(noise.exponential(mean))
        return mean * float(noise.lognormal(-(spread**2) / 2, spread)) if spread else mean

    blocks = math.ceil(plan.runs / plan.cells)
    of_last = plan.runs - (blocks - 1) * plan.cells
    waiting = list(range(blocks - 1, -1, -1))
    # (time, order, what: 0 a run is made, 1 it leaves the scheduler, 2 it is written; machine)
    events: list[tuple[float, int, int, int]] = []
    left = [0] * machines
    free = [0.0, 0.0]
    worked = [0.0, 0.0]
    order = 0

    def push(time: float, what: int, machine: int) -> None:
        nonlocal order
        heapq.heappush(events, (time, order, what, machine))
        order += 1

    def begin(time: float, machine: int) -> None:
        if not left[machine] and waiting:
            left[machine] = of_last if waiting.pop() == blocks - 1 else plan.cells
        if left[machine]:
            left[machine] -= 1
            push(time + drawn(plan.run_s, 0.10), 0, machine)

    for machine in range(machines):
        begin(0.0, machine)
    now = 0.0
    while events:
        now, _, what, machine = heapq.heappop(events)
        if what == 2:
            begin(now, machine)
            continue
        service = drawn((plan.scheduler_s, plan.controller_s)[what], 0.0)
        free[what] = max(free[what], now) + service
        worked[what] += service
        push(free[what], what + 1, machine)
    return now, worked[0] / now
