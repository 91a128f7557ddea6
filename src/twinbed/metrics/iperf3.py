"""The metrics of the workload ``iperf3``, in base units (seconds, bytes, bit/s)."""

from __future__ import annotations

from twinbed.metrics.metric import Layer, Metric


def _metric(name: str, unit: str, description: str, *, extensive: bool = False, headline: bool = False) -> Metric:
    return Metric(name, unit, Layer.APPLICATION, description, extensive=extensive, headline=headline)


METRICS = (
    _metric("received_bytes", "bytes", "payload bytes that arrived", extensive=True),
    _metric("goodput", "bit/s", "payload bits that arrived per second", headline=True),
    _metric("sent_bytes", "bytes", "payload bytes that were handed to the kernel"),
    _metric("send_rate", "bit/s", "payload bits handed to the kernel per second"),
    _metric("time_taken", "s", "how long the server measured, without what was omitted"),
    _metric("goodput_sd", "bit/s", "standard deviation of the goodput over the intervals of a second"),
    _metric("tcp_retransmissions", "1", "TCP segments sent again", extensive=True),
    _metric("tcp_rtt_mean", "s", "mean over intervals of the sender's smoothed round-trip time"),
    _metric("tcp_cwnd_mean", "bytes", "mean over intervals of the sender's congestion window"),
    _metric("sent_datagrams", "1", "datagrams that were sent"),
    _metric("received_datagrams", "1", "datagrams that arrived"),
    _metric("lost_datagrams", "1", "datagrams missing by their numbers when a later one came"),
    _metric("loss", "1", "share of the datagrams sent that did not arrive", headline=True),
    _metric("effective_throughput", "bit/s", "(1 - loss) x the rate at which datagrams were sent"),
    _metric("out_of_order_datagrams", "1", "datagrams that came after one with a larger number"),
    _metric(
        "interarrival_jitter", "s", "mean over intervals of the smoothed variation of transit times (RFC 3550)", headline=True
    ),
    _metric("sender_cpu_share", "1", "CPU time of the sending iperf3 by the time that passed"),
    _metric("receiver_cpu_share", "1", "CPU time of the receiving iperf3 by the time that passed"),
)
UNITS = {metric.name: metric.unit for metric in METRICS}
OF_A_TIME = frozenset(
    {
        "goodput",
        "goodput_sd",
        "send_rate",
        "tcp_rtt_mean",
        "tcp_cwnd_mean",
        "loss",
        "effective_throughput",
        "interarrival_jitter",
    }
)
"""Metrics of only a part of the run if clients did not start together; the others are counts of the whole run."""
SUMMED = frozenset(
    {
        "received_bytes",
        "goodput",
        "sent_bytes",
        "send_rate",
        "tcp_retransmissions",
        "sent_datagrams",
        "received_datagrams",
        "lost_datagrams",
        "effective_throughput",
        "out_of_order_datagrams",
    }
)
"""Metrics of the whole run that are the sum over its clients."""
