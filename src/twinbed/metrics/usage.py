"""CPU time and context switches of the workload's programs, and of the instruments': metrics of every run."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric


def _used(name: str, description: str, unit: str = "1", *, headline: bool = False) -> Metric:
    return Metric(name, unit, Layer.OS, description, extensive=True, headline=headline)


WORKLOAD_CPU = _used("workload_cpu_seconds", "CPU time of the workload's own programs on the host", "s", headline=True)
WORKLOAD_SWITCHES = _used("workload_context_switches", "context switches of the workload's own programs", headline=True)
WORKLOAD_VOLUNTARY = _used(
    "workload_voluntary_context_switches", "context switches in which a program of the workload waited for something"
)
WORKLOAD_INVOLUNTARY = _used(
    "workload_involuntary_context_switches", "context switches in which the kernel took the CPU from a program of the workload"
)
INSTRUMENT_CPU = _used("instrument_cpu_seconds", "CPU time of the instruments' programs on the host", "s")
INSTRUMENT_SWITCHES = _used("instrument_context_switches", "context switches of the instruments' programs")
METRICS = (WORKLOAD_CPU, WORKLOAD_SWITCHES, WORKLOAD_VOLUNTARY, WORKLOAD_INVOLUNTARY, INSTRUMENT_CPU, INSTRUMENT_SWITCHES)
