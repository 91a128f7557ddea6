"""The share of time in which all clients of a run ran: a metric of every run with several clients."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

OVERLAP = Metric(
    "overlap_share", "1", Layer.APPLICATION, "share of the clients' time, from their programs' starts to ends, in which all ran"
)
