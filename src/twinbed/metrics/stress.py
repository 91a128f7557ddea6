"""The metrics of the background load ``stress``: how fast its workers went, by kind of worker."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

WORKERS = ("cpu", "io", "memory")
"""The kinds of workers, as the settings name them."""

METRICS = {
    kind: Metric(f"background_{kind}_rate", "1/s", Layer.HOST, f"operations a second of the background load's {kind} workers")
    for kind in WORKERS
}
"""Kind of worker -> its metric."""
