"""A security monitor's view: the metrics of the instrument ``monitor``, and those that need the workload."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Value

_OWN: tuple[tuple[str, str, str], ...] = (
    ("monitored_connections", "1", "TCP, UDP and ICMP connections of the log that ignores checksums (Zeek's -C)"),
    (
        "strict_connections",
        "1",
        "connections of the log that checks checksums, as Zeek does by default: unfinished ones are bad",
    ),
    (
        "connections_lost_to_checksums",
        "1",
        "TCP connections that were opened and closed properly (SF) where checksums are ignored, less those where they are"
        " checked",
    ),
    (
        "invalid_checksum_share",
        "1",
        "TCP, UDP and ICMP checksums that a monitor calls bad, unfinished ones too, of those that could be verified",
    ),
    ("broken_checksum_share", "1", "checksums that are wrong and not merely unfinished, of those that could be verified"),
    (
        "unverifiable_checksum_share",
        "1",
        "packets whose TCP, UDP or ICMP checksum cannot be verified: cut by the snap length, fragments, or without one",
    ),
)
_ENGINES: tuple[tuple[str, str, str], ...] = (
    ("alerts", "1", "alerts of the engine, checksums ignored"),
    ("strict_alerts", "1", "alerts of the engine, checksums checked"),
    ("flow_records", "1", "connections that the engine logged, checksums ignored"),
    ("strict_flow_records", "1", "connections that the engine logged, checksums checked"),
)
HEADLINES = frozenset({"connections_lost_to_checksums", "invalid_checksum_share", "extra_connections"})


def _metric(name: str, unit: str, description: str) -> Metric:
    return Metric(name, unit, Layer.NETWORK, description, headline=name in HEADLINES)


METRICS = tuple(_metric(*row) for row in (*_OWN, *_ENGINES))
EXTRA = _metric("extra_connections", "1", "connections on the link that are not the workload's, retries of it included")
EXTRA_RATE = _metric("extra_connections_per_second", "1/s", "connections per second of the capture that are not the workload's")
EXTRA_METRICS = (EXTRA, EXTRA_RATE)
_UNITS = {metric.name: metric.unit for metric in (*METRICS, *EXTRA_METRICS)}


def value(metric: str, number: float | None, host: str = "") -> Value:
    """Return a value of one of these metrics, with its unit."""
    return Value(metric, number, _UNITS[metric], host)
