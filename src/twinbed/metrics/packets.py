"""The metrics of captures: name, unit, meaning, and whether they grow with the work done."""

from __future__ import annotations

from collections.abc import Mapping

from twinbed.metrics.metric import Layer, Metric, Value

COUNTED: Mapping[str, tuple[str, str]] = {
    "packets": ("1", "IP packets of connections"),
    "bytes": ("bytes", "bytes of IP packets, headers included"),
    "payload_bytes": ("bytes", "payload bytes of TCP, UDP and ICMP, repeated ones included"),
    "wire_packets": ("1", "packets on the wire that the packets stand for, however offload joined them"),
    "super_packets": ("1", "packets above the MTU, as segmentation and receive offload make them"),
    "data_segments": ("1", "TCP segments with payload, as captured"),
    "pure_acks": ("1", "TCP segments that only acknowledge"),
    "retransmitted_segments": ("1", "TCP segments with at least one repeated sequence number (tcptrace's rexmt data pkts)"),
    "out_of_order_segments": ("1", "TCP segments with new data below the highest number seen (tcptrace's outoforder pkts)"),
    "reordered_packets": ("1", "data packets that others sent later overtook, and were not sent again (RFC 4737)"),
    "bursts": ("1", "packet trains: data packets less than 1 ms apart in one direction of a connection"),
}
"""Sums over connections: (unit, meaning). On a link, one way or both; for the run: on the clients' links."""

MEASURED: Mapping[str, tuple[str, str]] = {
    "mean_segment_bytes": ("bytes", "mean payload of the TCP segments that have any, as captured"),
    "max_segment_bytes": ("bytes", "longest payload of a TCP segment, as captured"),
    "retransmission_rate": ("1", "data packets sent again, of the data packets on the wire"),
    "reordering_extent_max": ("1", "how many packets overtook a reordered one, at most (RFC 4737)"),
    "max_in_flight": ("bytes", "most bytes of a connection sent and not yet acknowledged, at the point of capture"),
    "mean_in_flight": ("bytes", "bytes in flight, mean over the time in which connections send data"),
    "burst_packets": ("1", "data packets of a burst, mean"),
    "burst_gap": ("s", "time between the bursts of a connection, mean"),
    "acks_per_data_packet": ("1", "pure acknowledgements that the other side sent, of the data packets on the wire"),
    "rtt": ("s", "time from data to its acknowledgement at the point of capture, mean of tcptrace's samples"),
    "link_goodput": ("bit/s", "payload bits per second, each counted once, from the first to the last packet"),
}
"""Metrics that are no sum: (unit, meaning). On a link, one way; for the run: over the clients' links, one way."""

EXCHANGES: Mapping[str, tuple[str, str]] = {
    "wire_first_byte_time_mean": ("s", "mean over exchanges of the time from the request's first byte to the answer's"),
    "wire_first_byte_time_p95": (
        "s",
        "95th percentile over exchanges of the time from the request's first byte to the answer's",
    ),
    "wire_exchange_time_mean": ("s", "mean over exchanges of the time from the request's first byte to the answer's last"),
    "wire_exchange_time_p95": (
        "s",
        "95th percentile over exchanges of the time from the request's first byte to the answer's last",
    ),
}
"""Seen in the packets, at the point of capture, unlike the load generator's own report."""

PATHS: Mapping[str, tuple[str, str]] = {
    "path_lost_packets": (
        "1",
        "packets captured on the sender's link but not on the receiver's, except unanswered flows seen on one link only",
    ),
    "path_delay_median": (
        "s",
        "time from the sender's link to the receiver's, at the machine's side of both; median of the connections' medians",
    ),
    "path_delay_variation": ("s", "95th percentile less median of the path delay, as owping's jitter; mean of the connections"),
    "path_split_packets": ("1", "packets that arrived as several"),
    "path_merged_packets": ("1", "packets that arrived joined to others"),
    "path_reordered_packets": (
        "1",
        "packets that arrived after others that were captured later on the sender's link (RFC 4737)",
    ),
    "path_3_reordered_packets": (
        "1",
        "packets that arrived right behind three that were sent later (RFC 4737's 3-reordering): TCP takes them for lost",
    ),
    "path_capture_reordered_packets": (
        "1",
        "packets already out of the sender's order in the capture on the sender's link: not reordered by the path",
    ),
    "path_late_displacement": (
        "1",
        "mean places by which late packets are late (RFC 5236's mean displacement of late packets); missing if none is late",
    ),
    "path_reorder_buffer_occupancy": (
        "1",
        "mean packets held after an arrival to pass all on in order (RFC 5236): behind late ones and behind lost ones",
    ),
}
"""From a client's capture and its server's, packet by packet; one way."""

STREAMS: Mapping[str, tuple[str, str]] = {
    "udp_loss": ("1", "datagrams of iperf3 that did not arrive, of those sent, by the numbers in them"),
    "udp_reordered": ("1", "datagrams of iperf3 that others sent later overtook (RFC 4737)"),
    "udp_jitter": ("s", "interarrival jitter of iperf3's datagrams at the end (RFC 3550), mean of the streams"),
}
"""Measured at the receiver's link; only for runs that have such streams."""

PATH_COUNTS: Mapping[str, str] = {
    "path_lost_packets": "lost_packets",
    "path_split_packets": "split_packets",
    "path_merged_packets": "merged_packets",
    "path_reordered_packets": "reordered_packets",
    "path_3_reordered_packets": "three_reordered_packets",
    "path_capture_reordered_packets": "capture_reordered_packets",
}
"""Metric -> column of the matching."""
SUMS = PATH_COUNTS.keys() | COUNTED.keys() | {"connections", "incomplete_connections", "link_goodput"}
"""Run metrics that are sums over the clients' links, and can be estimated from a sample of the links."""
LARGEST = frozenset({"max_segment_bytes", "reordering_extent_max", "max_in_flight"})
"""Run metrics that are the largest on any link, for which a sample gives only a lower bound."""

HEADLINES = frozenset({"packets", "bytes"})


def _metric(name: str, unit: str, description: str, *, extensive: bool = False, headline: bool = False) -> Metric:
    return Metric(name, unit, Layer.NETWORK, description, extensive=extensive, headline=headline)


METRICS = (
    *(_metric(name, *rest, extensive=True, headline=name in HEADLINES) for name, rest in COUNTED.items()),
    _metric("connections", "1", "TCP, UDP and ICMP connections, as Zeek distinguishes them", extensive=True),
    _metric("incomplete_connections", "1", "TCP connections that were not opened and closed properly (state not SF)"),
    *(_metric(name, *rest) for group in (MEASURED, EXCHANGES, PATHS, STREAMS) for name, rest in group.items()),
    _metric("other_packets", "1", "captured frames of no connection: ARP, neighbour discovery"),
    _metric("captured_packets", "1", "packets in the capture file"),
    _metric("capture_drops", "1", "packets that the capture lost"),
)
_UNITS = {metric.name: metric.unit for metric in METRICS}


def value(metric: str, number: float | None, host: str = "", direction: str = "") -> Value:
    """Return a value of one of these metrics, with its unit."""
    return Value(metric, number, _UNITS[metric], host, direction)
