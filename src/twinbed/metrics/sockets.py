"""The metrics of the instrument ``sockets``: the kernel's view of the workload's TCP connections."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric, Value

CWND = Metric(
    "cwnd_mean",
    "1",
    Layer.NETWORK,
    "congestion window in segments, mean over the time in which sockets were busy sending",
)
SRTT = Metric(
    "srtt_mean",
    "s",
    Layer.NETWORK,
    "smoothed round-trip time (RFC 6298) as senders know it, mean over the time in which sockets were busy sending",
)
RETRANSMISSIONS = Metric(
    "socket_retransmissions", "1", Layer.NETWORK, "segments that senders sent again, by their own count", extensive=True
)
DELIVERY_RATE = Metric(
    "delivery_rate_mean",
    "bit/s",
    Layer.NETWORK,
    "rate at which a connection's data arrives, as its sender estimates it, while the application does not limit it; mean over "
    "the time in which sockets were busy sending",
)
RWND_LIMITED = Metric(
    "rwnd_limited_share",
    "1",
    Layer.NETWORK,
    "share of the time sockets were busy sending in which the receive window held them up",
)
SNDBUF_LIMITED = Metric(
    "sndbuf_limited_share",
    "1",
    Layer.NETWORK,
    "share of the time sockets were busy sending in which their send buffer was too small",
)
NETWORK_LIMITED = Metric(
    "network_limited_share",
    "1",
    Layer.NETWORK,
    "share of the time sockets were busy sending in which the congestion window or a queue held them up",
)
APPLICATION_LIMITED = Metric(
    "application_limited_share",
    "1",
    Layer.NETWORK,
    "share of connections' time in which they had nothing to send; mean over connections, weighted by the bytes that they sent",
)
OPENED = Metric(
    "connections_opened",
    "1",
    Layer.NETWORK,
    "ends of connections opened on the host, without those known not to be the workload's",
    extensive=True,
)
SEEN = Metric("connections_sampled", "1", Layer.NETWORK, "number of the opened connections that have a sample")
SEEN_SHARE = Metric("connections_sampled_share", "1", Layer.NETWORK, "share of the opened connections that have a sample")
INTERVAL = Metric("socket_sample_interval", "s", Layer.NETWORK, "time between two samples of a connection, median")

METRICS = (
    CWND,
    SRTT,
    RETRANSMISSIONS,
    DELIVERY_RATE,
    RWND_LIMITED,
    SNDBUF_LIMITED,
    NETWORK_LIMITED,
    APPLICATION_LIMITED,
    OPENED,
    SEEN,
    SEEN_SHARE,
    INTERVAL,
)


FEWEST_SEEN = 0.9
"""From this share of the connections on, those with a sample stand for all."""


def value(metric: Metric, number: float | None, host: str) -> Value:
    return Value(metric.name, number, metric.unit, host)
