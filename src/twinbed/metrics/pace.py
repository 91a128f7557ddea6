"""What runs do inside, of every workload whose requests are captured or that reports intervals: pauses, and drift."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Scale

STALLS = Metric(
    "stalls",
    "1",
    Layer.APPLICATION,
    "times in which a client's connections waited and nothing went on, or it paused far beyond its pace (docs/stalls.md)",
)
STALLED = Metric("stalled_share", "1", Layer.APPLICATION, "share of the clients' time that they were stalled (docs/stalls.md)")
DRIFT = Metric(
    "rate_drift",
    "1",
    Layer.APPLICATION,
    "by what share the rate changes from the middle of a run to its end, all clients together",
    scale=Scale.INTERVAL,
    margin=0.1,
)
METRICS = (STALLS, STALLED, DRIFT)
