"""Estimates of a study's time and disk space, before anything runs.

The params of plugins estimate their own part (``contracts/params``). Times are estimates; bytes are an upper bound, reached
only if every link is full both ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from twinbed.model.drawn import size
from twinbed.study.run import Run

UNSHAPED_RATE = 10_000_000_000
"""bit/s taken for a link without a rate."""


@dataclass(frozen=True, slots=True)
class Expense:
    """Seconds on the clock and bytes on disk."""

    seconds: float
    bytes: int


def run_expense(run: Run) -> Expense:
    """Return the expense of one run."""
    workload_s = run.workload.params.estimate_seconds()
    seconds = run.testbed.params.estimate_seconds() + run.testbed.params.workload_seconds(workload_s)
    seconds += sum(choice.params.estimate_seconds() for choice in run.accompanying())
    rate = run.topology.link.rate or UNSHAPED_RATE
    clients = len(run.topology.names())
    per_second = clients * run.workload.params.estimate_bytes(rate)
    for choice in run.instruments.values():
        share = choice.params.share_of_hosts()
        pairs = clients if share is None else size(share, clients)
        per_second += 2 * pairs * choice.params.estimate_bytes(rate)
    return Expense(seconds, round(per_second * workload_s))


def expense(runs: Iterable[Run]) -> Expense:
    """Return the expense of some runs, one after another."""
    seconds, size = 0.0, 0
    for run in runs:
        cost = run_expense(run)
        seconds += cost.seconds
        size += cost.bytes
    return Expense(seconds, size)
