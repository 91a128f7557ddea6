"""What runs do inside, of every workload whose requests are captured or that reports intervals: pauses, and drift."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Scale

STALLS = Metric(
    "stalls",
    "1",
    Layer.APPLICATION,
    "pauses of clients, far beyond their own pace (docs/steady.md)",
)
STALLED = Metric("stalled_share", "1", Layer.APPLICATION, "share of the clients' time that they were stalled")
DRIFT = Metric(
    "rate_drift",
    "1",
    Layer.APPLICATION,
    "by what share the rate changes from the middle of a run to its end, all clients together",
    scale=Scale.INTERVAL,
    margin=0.1,
)
METRICS = (STALLS, STALLED, DRIFT)
