"""The metrics of the workload ``planted``, which are named as those of a real workload and of captures."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

METRICS = (
    Metric("requests", "1", Layer.APPLICATION, "requests completed", extensive=True),
    Metric("requests_per_second", "1/s", Layer.APPLICATION, "requests completed per second", headline=True),
    Metric("packets", "1", Layer.NETWORK, "packets on the link, both directions", extensive=True, headline=True),
    Metric(
        "bytes", "bytes", Layer.NETWORK, "bytes on the link, both directions, headers included", extensive=True, headline=True
    ),
)
UNITS = {metric.name: metric.unit for metric in METRICS}
