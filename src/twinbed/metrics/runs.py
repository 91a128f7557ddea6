"""The metrics of runs with several parts: use by programs, overlap of clients, completeness of captures, pauses and drift.

Use is measured in every run, overlap in every run with several clients, pauses and drift for workloads whose requests are
captured or that report intervals.
"""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Scale

STALLS = Metric(
    "stalls",
    "1",
    Layer.APPLICATION,
    "times that a client's connections waited without progress, or it paused far beyond its pace (twinbed analyse stalls)",
)
STALLED = Metric(
    "stalled_share", "1", Layer.APPLICATION, "share of the clients' time that they were stalled (twinbed analyse stalls)"
)
DRIFT = Metric(
    "rate_drift",
    "1",
    Layer.APPLICATION,
    "relative change of the rate from the middle of a run to its end, all clients together",
    scale=Scale.INTERVAL,
    margin=0.1,
)
METRICS = (STALLS, STALLED, DRIFT)

COMPLETENESS = Metric(
    "captured_requests_share",
    "1",
    Layer.NETWORK,
    "complete requests in the link's capture over the requests that its client counted",
)
COMPLETENESS_METRICS = (COMPLETENESS,)

OVERLAP = Metric(
    "overlap_share", "1", Layer.APPLICATION, "share of the clients' time, from their programs' starts to ends, in which all ran"
)


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
USAGE_METRICS = (WORKLOAD_CPU, WORKLOAD_SWITCHES, WORKLOAD_VOLUNTARY, WORKLOAD_INVOLUNTARY, INSTRUMENT_CPU, INSTRUMENT_SWITCHES)
