"""Pauses and drift inside runs, for every workload whose requests are captured or that reports intervals."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Scale

STALLS = Metric(
    "stalls",
    "1",
    Layer.APPLICATION,
    "times that a client's connections waited without progress, or it paused far beyond its pace (docs/stalls.md)",
)
STALLED = Metric("stalled_share", "1", Layer.APPLICATION, "share of the clients' time that they were stalled (docs/stalls.md)")
DRIFT = Metric(
    "rate_drift",
    "1",
    Layer.APPLICATION,
    "relative change of the rate from the middle of a run to its end, all clients together",
    scale=Scale.INTERVAL,
    margin=0.1,
)
METRICS = (STALLS, STALLED, DRIFT)
