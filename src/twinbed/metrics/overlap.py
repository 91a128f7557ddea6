"""How far the clients of a run ran at the same time: a metric that every run of several clients has."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

OVERLAP = Metric(
    "overlap_share", "1", Layer.APPLICATION, "share of the clients' time, from their programs' starts to ends, in which all ran"
)
