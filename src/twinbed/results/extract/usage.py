"""CPU time and context switches of the workload's programs and the instruments' on each host, from the record of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from twinbed.metrics.metric import Metric, Value
from twinbed.metrics.usage import (
    INSTRUMENT_CPU,
    INSTRUMENT_SWITCHES,
    WORKLOAD_CPU,
    WORKLOAD_INVOLUNTARY,
    WORKLOAD_SWITCHES,
    WORKLOAD_VOLUNTARY,
)
from twinbed.model.usage import ProgramUsage, Role, Usage


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
