"""The metrics of the instrument ``fingerprint``: only quantities; everything it finds is in the table ``fingerprints``."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Value

TIMER = Metric("timer_cost", "s", Layer.HOST, "time of one clock_gettime(2), median of batches")
RDTSC = Metric("rdtsc_cost", "s", Layer.HOST, "time of one read of the time stamp counter, median of batches")
CPUID = Metric("cpuid_cost", "s", Layer.HOST, "time of one CPUID instruction, which traps into a hypervisor; median of batches")
HTTP = Metric("http_time", "s", Layer.APPLICATION, "mean time from a plain HTTP request at rest to its answer's first byte")
ICMP = Metric("icmp_delay", "s", Layer.NETWORK, "mean time from an ICMP echo at rest to its answer")
ARP = Metric("arp_delay", "s", Layer.NETWORK, "mean time from an ARP request at rest to its answer")
METRICS = (TIMER, RDTSC, CPUID, HTTP, ICMP, ARP)
OF_FEATURES = {
    "timer_cost_s": TIMER,
    "rdtsc_cost_s": RDTSC,
    "cpuid_cost_s": CPUID,
    "http_time_mean_s": HTTP,
    "icmp_delay_mean_s": ICMP,
    "arp_delay_mean_s": ARP,
}
"""Feature -> the metric that has its value."""


def value(feature: str, number: float | None, host: str) -> Value:
    metric = OF_FEATURES[feature]
    return Value(metric.name, number, metric.unit, host)
