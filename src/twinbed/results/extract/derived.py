"""Computes metrics that follow from others: work and effects divided by the work done.

``<name>_per_<unit of work>`` for every extensive metric: packets and requests make ``packets_per_request``.  The divisor is the
workload's ``work`` metric of the whole run, or the sum over the hosts it was measured on.  Missing or zero work makes null.

``fairness`` of a run with several pairs: Jain's index (1984) of the clients' ``rate`` metric of the workload, exact for these
clients.  A client without a rate, or rates of 0 alone, make null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from twinbed.metrics.derived import FAIRNESS, per_work
from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.runs import (
    INSTRUMENT_CPU,
    INSTRUMENT_SWITCHES,
    WORKLOAD_CPU,
    WORKLOAD_INVOLUNTARY,
    WORKLOAD_SWITCHES,
    WORKLOAD_VOLUNTARY,
)
from twinbed.model.usage import ProgramUsage, Role, Usage


def work_done(values: Iterable[Value], work: str) -> float | None:
    """Return the run's work: the value of the whole run, else the sum over hosts; None if any of it is missing."""
    of_work = [value for value in values if value.metric == work]
    whole = [value for value in of_work if not value.host]
    parts = [value.value for value in whole or of_work]
    present = [part for part in parts if part is not None]
    return sum(present) if present and len(present) == len(parts) else None


def derive(values: Iterable[Value], metrics: Mapping[str, Metric], work: str, done: float | None) -> Iterator[Value]:
    """Yield the derived values of ``values``."""
    for value in values if work else ():
        metric = metrics[value.metric]
        if not metric.extensive or metric.name == work:
            continue
        derived = per_work(metric, work)
        ratio, low, high = (
            number / done if number is not None and done else None for number in (value.value, value.low, value.high)
        )
        yield Value(derived.name, ratio, derived.unit, value.host, value.direction, low, high)


def fairness(values: Sequence[Value], rate: str, pairs: int) -> Iterator[Value]:
    """Yield the fairness over the clients' own rates, for two or more pairs; nothing for one pair or a workload without a
    rate."""
    if pairs < 2 or not rate:
        return
    # Imports scipy, which runs of one pair do without.
    from twinbed.statistics.fairness import jain

    of_clients = [value.value for value in values if value.metric == rate and value.host]
    rates = [number for number in of_clients if number is not None and 0 <= number < math.inf]
    index = jain(rates) if len(rates) == len(of_clients) == pairs else None
    yield Value(FAIRNESS.name, index, FAIRNESS.unit)


def _cpu(usage: Usage) -> float:
    return usage.cpu_s


def _switches(usage: Usage) -> float:
    return usage.voluntary_switches + usage.involuntary_switches


def _voluntary(usage: Usage) -> float:
    return usage.voluntary_switches


def _involuntary(usage: Usage) -> float:
    return usage.involuntary_switches


_OF_ROLE: dict[Role, tuple[tuple[Metric, Callable[[Usage], float]], ...]] = {
    Role.WORKLOAD: (
        (WORKLOAD_CPU, _cpu),
        (WORKLOAD_SWITCHES, _switches),
        (WORKLOAD_VOLUNTARY, _voluntary),
        (WORKLOAD_INVOLUNTARY, _involuntary),
    ),
    Role.INSTRUMENT: ((INSTRUMENT_CPU, _cpu), (INSTRUMENT_SWITCHES, _switches)),
}


def usage(programs: Sequence[ProgramUsage]) -> Iterator[Value]:
    """Yield one value a metric and host; a host without programs of a role has none of that role."""
    for role, metrics in _OF_ROLE.items():
        of_role = [program for program in programs if program.role is role]
        for host in dict.fromkeys(program.host for program in of_role):
            used = [program.usage for program in of_role if program.host == host]
            for metric, of in metrics:
                yield Value(metric.name, sum(map(of, used)), metric.unit, host)
