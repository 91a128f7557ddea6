"""The metric of the instrument ``stations``: how many records it made."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric

RECORDS = Metric(
    "station_records",
    "1",
    Layer.OS,
    "records of packets at stations of the host's kernel, and of calls that moved their bytes",
    extensive=True,
)
METRICS = (RECORDS,)
