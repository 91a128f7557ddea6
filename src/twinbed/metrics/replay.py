"""The metrics of the workload ``replay``, in base units."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric


def _metric(name: str, unit: str, description: str, *, headline: bool = False) -> Metric:
    return Metric(name, unit, Layer.NETWORK, description, headline=headline)


METRICS = (
    _metric("sent_packets", "1", "packets of the capture that both sides sent"),
    _metric("sent_packets_per_second", "1/s", "packets of the capture sent per second, from the first to the last"),
    _metric("failed_packets", "1", "packets that tcpreplay could not send"),
    _metric("arrived_packets", "1", "packets that arrived at the other host's interface"),
    _metric("arrived_share", "1", "packets that arrived, of those that were sent", headline=True),
    _metric("replay_duration", "s", "from a side's first packet to its last, as tcpreplay has it; the longer of both sides"),
    _metric(
        "replay_timing_error",
        "s",
        "how much earlier or later packets arrived than in the capture, counted from each side's first one; 95th percentile",
        headline=True,
    ),
    _metric(
        "replay_start_skew",
        "s",
        "between the first frames of both sides at the client's host: its own as it is sent, the server's as it comes",
    ),
    _metric("left_out_packets", "1", "packets not replayed: not IPv4, fragments, too long, too many"),
)
UNITS = {metric.name: metric.unit for metric in METRICS}
