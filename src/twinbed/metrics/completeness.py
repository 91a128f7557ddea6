"""The share of the workload's requests that its captures hold."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

COMPLETENESS = Metric(
    "captured_requests_share",
    "1",
    Layer.NETWORK,
    "complete requests in the link's capture over the requests that its client counted",
)
METRICS = (COMPLETENESS,)
