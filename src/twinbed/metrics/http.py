"""The metrics of the workload ``http``, in base units (seconds, bytes, bit/s)."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

STAGES = {
    "connect": "from the start of the request until connected",
    "processing": "from connected until the answer was complete",
    "waiting": "from the request sent until the first byte of the answer",
    "total": "from the start until the answer was complete",
}
"""ab's connection times, which ab itself rounds to a millisecond. wrk gives ``total`` alone, without connecting, to 10 ns."""
MOMENTS = ("min", "mean", "sd", "median", "max")
PERCENTILES = (50, 66, 75, 80, 90, 95, 98, 99, 100)
"""Percentiles that ab prints; their values are from its CSV file, which has microseconds. wrk gives 50, 75, 90 and 99."""


def _metric(
    name: str, unit: str, description: str, *, extensive: bool = False, headline: bool = False, also: tuple[str, ...] = ()
) -> Metric:
    return Metric(name, unit, Layer.APPLICATION, description, extensive=extensive, headline=headline, also=also)


METRICS = (
    _metric("requests", "1", "requests completed", extensive=True),
    _metric("requests_per_second", "1/s", "requests completed per second", headline=True, also=("rps", "qps", "throughput")),
    _metric("goodput", "bit/s", "document bits received per second, without headers"),
    _metric("transfer_rate", "bytes/s", "bytes of answers received per second, with HTTP headers"),
    _metric("time_taken", "s", "how long the load generator measured"),
    _metric("transferred_bytes", "bytes", "bytes of answers received, with HTTP headers"),
    _metric("document_transferred_bytes", "bytes", "document bytes received"),
    _metric("document_bytes", "bytes", "size of the document, as the first answer had it"),
    _metric("concurrency", "1", "requests in flight"),
    _metric("time_per_request", "s", "mean time of a request, as concurrency x time taken / requests"),
    _metric("time_between_requests", "s", "time taken / requests, over all concurrent requests"),
    _metric("keep_alive_requests", "1", "requests answered on a connection that stayed open"),
    _metric("failed_requests", "1", "requests that failed in any way"),
    _metric("failed_connect", "1", "failures to connect"),
    _metric("failed_receive", "1", "failures to read the answer (wrk: read)"),
    _metric("failed_length", "1", "answers of another length than the first"),
    _metric("failed_exceptions", "1", "other failures of ab"),
    _metric("failed_write", "1", "failures to send the request"),
    _metric("failed_timeout", "1", "requests that wrk gave up waiting for"),
    _metric("non_2xx", "1", "answers with a status other than 2xx"),
    *(
        _metric(f"{stage}_time_{moment}", "s", f"{moment} over requests of the time {meaning}")
        for stage, meaning in STAGES.items()
        for moment in MOMENTS
    ),
    *(_metric(f"total_time_p{p}", "s", f"time within which {p} % of the requests were served") for p in PERCENTILES),
)

UNITS = {metric.name: metric.unit for metric in METRICS}

SUMMED = frozenset(
    {
        "requests",
        "requests_per_second",
        "goodput",
        "transfer_rate",
        "transferred_bytes",
        "document_transferred_bytes",
        "concurrency",
        "keep_alive_requests",
        "failed_requests",
        "failed_connect",
        "failed_receive",
        "failed_length",
        "failed_exceptions",
        "failed_write",
        "failed_timeout",
        "non_2xx",
    }
)
"""Metrics of the whole run that are the sum over its clients."""
