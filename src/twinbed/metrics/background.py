"""The metrics of background loads: ``traffic`` as its tools count what they carried, ``stress`` as its workers' rates."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

HTTP = Metric("background_http_rate", "1/s", Layer.APPLICATION, "HTTP requests per second of the background traffic")
TCP = Metric("background_tcp_goodput", "bit/s", Layer.APPLICATION, "payload bits per second of background TCP that arrived")
UDP = Metric("background_udp_goodput", "bit/s", Layer.APPLICATION, "payload bits per second of background UDP that arrived")
LOSS = Metric("background_udp_loss", "1", Layer.APPLICATION, "share of the background's UDP datagrams that did not arrive")
METRICS = (HTTP, TCP, UDP, LOSS)

WORKERS = ("cpu", "io", "memory")
"""The kinds of workers, as the settings name them."""

STRESS_METRICS = {
    kind: Metric(f"background_{kind}_rate", "1/s", Layer.HOST, f"operations per second of the background load's {kind} workers")
    for kind in WORKERS
}
"""Kind of worker -> its metric."""
