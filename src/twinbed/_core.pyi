"""Raw artifacts into tables. Paths or bytes in, `pyarrow.Table` and dicts out; the GIL is not held meanwhile.

Times are seconds, sizes bytes. Missing is null or None, never 0. An artifact that cannot be read raises `ArtifactError`,
a file that cannot be opened `OSError`.
"""

import os
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, TypedDict, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__version__: str

Row: TypeAlias = dict[str, str | int | float | bool | None]
"""A row of a table, as its `to_pylist` gives it. With `as_rows` pyarrow is not imported, which takes longer than reading a
small capture; a large one wants the table."""

class ArtifactError(ValueError):
    """An artifact that cannot be read: which file, where in it, what was expected there."""

class LoessSummary(TypedDict):
    observations: int
    equivalent_parameters: float
    """tr(L' L) of the map L from responses to the curve."""
    trace: float
    """tr(L)."""
    delta_one: float
    delta_two: float
    residual_scale: float | None
    """Of an observation of weight 1; None where the curve leaves nothing for residuals."""
    degrees_of_freedom: float | None
    """delta_one^2 / delta_two, of Student's t."""

def loess(
    x: Sequence[float] | npt.NDArray[np.float64],
    y: Sequence[float] | npt.NDArray[np.float64],
    span: float = 0.75,
    degree: Literal[0, 1, 2] = 2,
    family: Literal["gaussian", "symmetric"] = "gaussian",
    surface: Literal["interpolate", "direct"] = "interpolate",
    weights: Sequence[float] | npt.NDArray[np.float64] | None = None,
    at: Sequence[float] | npt.NDArray[np.float64] | None = None,
    level: float = 0.95,
) -> tuple[pa.Table, LoessSummary]:
    """LOESS of y over one predictor, as Cleveland, Devlin and Grosse (1988): the same curve, standard errors and degrees of
    freedom as R's `loess(..., statistics = "exact")`. Ties in x are allowed; observations may be in any order.

    `span` is the share of observations near a point that its polynomial is fitted to. `symmetric` resists outliers (four
    fits with bisquare weights). `interpolate` is exact at vertices and cubic between them, and null outside the observations;
    `direct` is exact everywhere, in time that grows with the square of the observations; beyond 1,000 of them its deltas are
    the interpolating surface's. An observation's variance is taken as proportional to 1 / weight.

    Columns, at each of `at` (by default at x): at, fit, standard_error, low, high (of the mean, at `level`); without `at` also
    robustness, the weight that each observation's residual earned it. Raises ValueError where lengths differ, a number is not
    finite, or the span takes too few observations, or only ones at one x.
    """

def loess_curve(
    x: Sequence[float] | npt.NDArray[np.float64],
    y: Sequence[float] | npt.NDArray[np.float64],
    at: Sequence[float] | npt.NDArray[np.float64],
    span: float = 0.75,
    degree: Literal[0, 1, 2] = 2,
) -> list[float]:
    """The fit of `loess` at each of `at`, with `direct` and by least squares, without standard errors and what these take: in
    time that grows with the observations times the points. Raises ValueError as `loess` does, and where a point is not finite.
    """

def timeline_distances(
    timelines: Sequence[tuple[str, npt.NDArray[np.float64], npt.NDArray[np.float64]]],
) -> list[float]:
    """How unlike requests are, of each to each after it: (0, 1), (0, 2), ... (1, 2), ...

    Of each request: its packets or pieces of several, a letter each, how many packets each has, and the time since the one
    before it, in the unit in which a change of 1 costs 1. Raises ValueError where these are not as many as each other.
    """

class CaptureSummary(TypedDict):
    packets: int
    bytes: int
    """Frames' original lengths."""
    captured_bytes: int
    """What of them is in the file (the snap length cuts)."""
    first_s: float | None
    last_s: float | None
    first_ns: int | None
    last_ns: int | None
    protocols: dict[str, int]
    """IP packets by transport: tcp, udp, icmp, ..., ip_protocol_N."""
    not_ip: dict[str, int]
    """Packets that are not IP, or in an encapsulation that is not read, by kind (arp, lldp, wlan_encrypted, ...)."""
    interfaces: int
    dropped_packets: int | None
    """As a pcapng file says; a pcap file cannot."""
    skipped: dict[str, int]
    """Packets and records that are in no row, by reason (last_record_cut_off, tcp_header_cut_off, ...)."""
    notes: dict[str, int]
    """Packets that are in a row, but odd."""

class UdpSummary(TypedDict):
    packets: int
    udp_packets: int
    """Those that are in a row."""
    unread: dict[str, int]
    """Rows without header, by reason (the column `unread`)."""
    skipped: dict[str, int]
    notes: dict[str, int]
    stopped: str | None
    """Why reading ended before the end of the file."""

def udp_streams(
    path: str | os.PathLike[str],
    *,
    headers: Literal["auto", "iperf3", "iperf3-64bit", "none"] = "auto",
    udp_timeout_s: float = 60.0,
    tunnels: bool = False,
) -> tuple[pa.Table, UdpSummary]:
    """One row per direction of a UDP flow, and for iperf3's streams what the numbers and times in the payloads tell.

    Take the receiver's capture: at the sender nothing is lost yet. iperf3 is recognised by content; `headers` forces one
    width of its number on all datagrams, or none. 12 bytes of payload (16 with `--udp-counters-64bit`) must be captured.

    Columns: flow (the same for both directions), source_address, source_port, destination_address, destination_port,
    start_s, start_ns, duration_s, packets (fragments too), bytes (IP), datagrams, payload_bytes, other_datagrams (no
    header), cut_off_datagrams (header not captured), header (iperf3, iperf3-64bit), unread (why there is none: not_iperf3,
    payload_cut_off, greeting_only, not_asked, too_many_streams: above 4096). Null without header: first_sequence,
    highest_sequence, expected_datagrams (from 1 where the greeting was captured, else from the lowest number),
    distinct_datagrams, lost_datagrams (expected less distinct), lost_rfc3550 (A.3: duplicates count as received),
    duplicate_datagrams, reordered_datagrams and reordering_extent_max (RFC 4737, in datagrams), loss_bursts,
    loss_burst_max, iperf3_lost and iperf3_out_of_order (as its receiver counts), beyond_memory (late by more than 4096
    gaps), loss, jitter_s (RFC 3550, at the end), jitter_mean_s, jitter_max_s, delay_p95_p50_s (of one-way delay),
    delay_range_s, delay_resolution_s (0: exact).

    iperf3's own jitter has its scheduling in it, because it takes a datagram's time when it has read it; here it is the
    kernel's. Datagrams that a full socket buffer dropped are lost for iperf3 and not here.
    """

def frames(capture: bytes) -> pa.Table:
    """The packets of a capture (pcap or pcapng) that is held in memory, one row each, in its order; a last record that is cut
    off is none.

    Columns: time_ns (since the epoch, null where the file has none), bytes (the frame's original length), captured_bytes,
    and null for what is not TCP or UDP over IP: link_header_bytes, ip_header_bytes (options, extension headers too),
    transport_header_bytes.
    """

class PairedCapture(TypedDict):
    packets: int
    first_ns: int | None
    last_ns: int | None
    skipped: dict[str, int]
    dropped_packets: int | None
    stopped: str | None

class PairSummary(TypedDict):
    sender_side: PairedCapture
    receiver_side: PairedCapture
    matches: int
    """Two packets that begin with the same byte: delays are taken from these."""
    nothing_matched: str | None
    """What it means that no packet was found in both."""
    clock_offset_if_symmetric_s: float | None
    """The receiver side's clock less the sender side's, on the assumption that the least delays there and back are equal.
    Wrong by half of what they differ. None without packets both ways."""
    least_round_trip_s: float | None
    """Least delays there and back together, in which the offset cancels."""
    reorder_density: list[tuple[str, int, int]]
    """RFC 5236, over all connections: passes, displacement (late above 0), packets. Of what arrived within 32 places."""
    reorder_buffer_occupancy_density: list[tuple[str, int, int]]
    """The same: passes, packets that a receiver that hands on in order holds after an arrival (32 at most), arrivals."""
    notes: dict[str, int]
    """starts_have_nothing_in_common (clocks were believed), given_up_for_room, connection_table_full."""

@overload
def match_captures(
    sender_side: str | os.PathLike[str],
    receiver_side: str | os.PathLike[str],
    *,
    mtu: int = 1500,
    tunnels: bool = False,
    as_rows: Literal[False] = False,
) -> tuple[pa.Table, PairSummary]:
    """What became of the packets between two captures of one path: one row per direction of each connection.

    TCP is matched by sequence numbers, so super-packets match what they were split into or merged from; all else by header
    fields and 24 bytes of payload. Clocks need not agree: raw_delay_min_s holds their offset, the variations do not.
    Rewritten addresses (NAT) match nothing.

    Columns: protocol, source_address, source_port, destination_address, destination_port, passes (sender_to_receiver_side,
    receiver_to_sender_side) and passes_by (connection, hosts: told by delays; assumed: one-way traffic, taken to go to the
    receiver side). `_packets` and `_payload_bytes` each of: sent, arrived (seen at the point nearer to the source, and at
    the other), lost (nothing of a packet arrived), partly_lost (bytes: what did not), appeared (arrived, not seen sent),
    duplicated (arrived again), edge_sent, edge_arrived (unmatched, and with the least or greatest delay of that direction
    outside the other capture: not counted as lost or appeared), split (sent, arrived as several), merged (arrived, sent as
    several). matched_sent_packets, matched_arrived_packets (in full), lost_ranges, reordered_packets (RFC 4737, by the
    order sent), three_reordered_packets (of them, those right behind three that were sent later: RFC 4737's 3-reordering, at
    which TCP takes a packet for lost), capture_reordered_packets (not among them: the capture nearer to the sender has them in
    another order than their IPv4 identifications, as captures on several CPUs or queues do), split_parts, merged_parts,
    sent_super_packets, arrived_super_packets (above `mtu`), delay_samples, raw_delay_min_s, delay_variation_p50_s,
    _p95_s, _p99_s, _max_s (over the least), delay_p95_p50_s, delay_resolution_s (0: exact).

    sent = matched_sent + lost + partly_lost + edge_sent, in packets, and arrived = matched_arrived + appeared + duplicated +
    edge_arrived. Packets wait 30 s for each other, at most 65,536 in a direction at a point.
    """

@overload
def match_captures(
    sender_side: str | os.PathLike[str],
    receiver_side: str | os.PathLike[str],
    *,
    mtu: int = 1500,
    tunnels: bool = False,
    as_rows: Literal[True],
) -> tuple[list[Row], PairSummary]: ...

class PacketisationSummary(TypedDict):
    packets: int
    connections_without_payload: int
    """They have no row."""
    packets_without_payload_connection: int
    connections_finished_early: int
    """To bound memory, before their end was seen: 24,576 open ones at once are always kept."""
    dropped_packets: int | None
    skipped: dict[str, int]

def packetisation(
    path: str | os.PathLike[str], *, mtu: int = 1500, tunnels: bool = False, burst_gap_s: float = 0.001
) -> tuple[pa.Table, pa.Table, PacketisationSummary]:
    """How payload was cut into packets: a row for each direction of each connection that carried payload, and one for each of
    its payload sizes.

    Columns: protocol, originator_address, originator_port, responder_address, responder_port, first_packet (number in the
    capture of the connection's first packet, from 1), direction (originator, responder), start_ns, duration_s,
    handshake_s, packets, bytes (IP), payload_bytes, data_segments (as captured), super_packets (those that stand for
    several), wire_packets and wire_data_packets (what was on the wire), pure_acks, in_flight_max_bytes,
    retransmitted_packets, retransmitted_bytes (seen before), recovered_packets, recovered_bytes (sent again, their first
    sending lost before the capture point), reordered_packets, reordering_extent_sum, reordering_extent_max (RFC 4737),
    bursts, burst_packets_max, burst_bytes_max, burst_packets_mean, burst_bytes_mean, gap_mean_s, gap_max_s (null without
    times), in_flight_mean_bytes (over data_phase_s), data_phase_s, in_flight_s, nagle_wait_s (of nagle_waits),
    acks_per_data_packet (the other side's),
    retransmission_rate, retransmission_byte_rate, reordering_extent_mean. Bursts, retransmissions and reordering count
    packets on the wire; a longer gap than `burst_gap_s` ends a burst. Those of TCP alone are null for UDP.

    Sizes: first_packet, direction, least_payload_bytes, most_payload_bytes (equal, but for bins of sizes after a
    direction's first 128), segments (as captured), wire_packets.
    """

class RequestsSummary(TypedDict):
    packets: int
    other_connections: int
    """TCP connections without an HTTP request."""
    connections_finished_early: int
    dropped_packets: int | None
    skipped: dict[str, int]

def requests(path: str | os.PathLike[str], *, mtu: int = 1500, tunnels: bool = False) -> tuple[pa.Table, RequestsSummary]:
    """One row per HTTP/1.x exchange over plain TCP, by connection, then index.

    Columns: client_address, client_port, server_address, server_port, first_packet (number in the capture of the
    connection's first packet, from 1), index, method, status (null where not captured), start_s, start_ns,
    time_to_first_byte_s (request's first byte to final response's first byte), duration_s (to the response's last byte;
    null if its end was not seen), complete, delimited (headers; direction, where heads are not captured fully), and for
    `client_` and `server_` each: packets, wire_packets, bytes (IP), payload_bytes. Every packet of a connection is in one
    exchange.
    """

class ChecksumVerdicts(TypedDict):
    good: int
    bad: int
    partial: int
    """The field holds the folded pseudo-header alone: the NIC was to finish it, or merged segments."""
    not_checked: int
    """Cut by the snap length, a fragment, or without one."""

class LogSummary(TypedDict):
    packets: int
    bytes: int
    """Frames' original lengths."""
    captured_bytes: int
    first_s: float | None
    last_s: float | None
    first_ns: int | None
    last_ns: int | None
    not_ip: dict[str, int]
    """Packets that are not IP, or in an encapsulation that is not read, by kind (arp, lldp, wlan_encrypted, ...)."""
    connections: int
    evicted_connections: int
    """Logged before their end, because there were more than max_connections at once."""
    checksums: dict[str, ChecksumVerdicts]
    """By ipv4, tcp, udp, icmp, icmpv6."""
    ignored_packets: int
    """In no row's counts, because of a bad checksum."""
    interfaces: int
    dropped_packets: int | None
    """As a pcapng file says; a pcap file cannot."""
    skipped: dict[str, int]
    """Other packets and records that are in no row, by reason."""
    notes: dict[str, int]
    """Packets that are in a row, but odd."""
    truncated: list[Truncated]

@overload
def capture_tables(
    path: str | os.PathLike[str],
    wanted: None = None,
    *,
    ignore_checksums: bool = False,
    tunnels: bool = False,
    turns: Sequence[int] = (),
) -> tuple[dict[str, pa.Table], LogSummary]: ...
@overload
def capture_tables(
    path: str | os.PathLike[str],
    wanted: Sequence[str],
    *,
    ignore_checksums: bool = False,
    tunnels: bool = False,
    turns: Sequence[int] = (),
) -> tuple[dict[str, pa.Table], LogSummary | None]:
    """All that is read of one capture, in one pass over it: the tables of `connection_log` (`connections`), `flows`,
    `packetisation` (with `segment_sizes`), `requests` (`exchanges`) and `udp_streams` (`streams`), with default options but
    `tunnels`,
    `stalls` (docs/stalls.md lists its columns), and the summary of the log. `observer` stands for `fingerprints`, a row for
    each feature of each host (role, address, syns, feature, text, value, seen; docs/fingerprint.md), and `windows`, a row for
    each block of packets (docs/packets.md). `wanted` names those that are to be made; None makes all. The summary comes with
    `connections` alone. `turns` has ports of servers whose requests and answers take turns: they are exchanges, whatever the
    protocol. Raises ArtifactError as those functions do, ValueError for another name.
    """

@overload
def connection_log(
    paths: Sequence[str | os.PathLike[str]],
    *,
    tunnels: bool = False,
    ignore_checksums: bool = False,
    unfinished_are_bad: bool = False,
    port: int | None = None,
    host: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    max_connections: int = 1_000_000,
    as_rows: Literal[False] = False,
) -> tuple[pa.Table, LogSummary]:
    """One row per connection (TCP, UDP, ICMP) as Zeek's conn.log has it, in the order in which they ended.

    Files may be compressed by gzip or Zstandard, `-` is standard input, and several are one capture by their packets'
    times. With `tunnels`, packets inside tunnels (docs/captures.md) count instead of those that carry them. Packets with a
    bad checksum are in no count unless `ignore_checksums` (Zeek's -C); with `unfinished_are_bad`, those too that the
    capturing host left to its NIC, as in Zeek. Only packets from `from_ns` and before `until_ns` count, only connections
    with `port` and `host` at either end are rows. With `max_connections` at once, those silent the longest are logged as
    they are.

    Columns: uid, start_s, start_ns, originator_address, originator_port, responder_address, responder_port, protocol (tcp,
    udp, icmp), ip_protocol, duration_s, duration_ns, originator_bytes, responder_bytes, state (S0 S1 SF REJ S2 S3 RSTO RSTR
    RSTOS0 RSTRH SH SHR OTH), missed_bytes, unseen_bytes, history, for `originator_` and `responder_` each: packets, ip_bytes,
    frame_bytes, payload_bytes; and tunnelled. What they mean: docs/connections.md.
    """

@overload
def connection_log(
    paths: Sequence[str | os.PathLike[str]],
    *,
    tunnels: bool = False,
    ignore_checksums: bool = False,
    unfinished_are_bad: bool = False,
    port: int | None = None,
    host: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    max_connections: int = 1_000_000,
    as_rows: Literal[True],
) -> tuple[list[Row], LogSummary]: ...

class Truncated(TypedDict):
    """A capture that could not be read to its end: its rows up to there are in the table."""

    file: str
    byte: int
    """Of the capture as it was before it was compressed."""
    reason: str

class FlowsSummary(CaptureSummary):
    rows: int
    truncated: list[Truncated]

@overload
def flows(
    paths: Sequence[str | os.PathLike[str]],
    *,
    tunnels: bool = False,
    port: int | None = None,
    host: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    max_connections: int | None = None,
    threads: int = 1,
    as_rows: Literal[False] = False,
) -> tuple[pa.Table, FlowsSummary]:
    """One row per TCP connection of captures read as one, with tcptrace's statistics, by the first packets' times.

    Files are pcap or pcapng, plain or compressed by gzip or Zstandard; `-` is standard input. Packets are merged by time: the
    order in which files are given changes nothing. Only packets from `from_ns` and before `until_ns` (since the epoch) count,
    only connections with `port` and `host` (an IP address) on either side are rows. At more than `max_connections` (262,144) at
    a time, those idle longest are finished early; from a thirty-second of that on, those that have seen a FIN or a RST: a
    packet of a closed connection that comes after some 8,192 others have closed (fewer by those open) begins a new row. More
    threads change the time it takes, and nothing else.

    Columns: host_a, port_a, host_b, port_b, first_packet_number, first_packet, last_packet (s), first_packet_ns,
    last_packet_ns, elapsed_time, total_packets, complete_conn (yes, no, reset), syns, fins, and with the endings `_a2b` and
    `_b2a` what each side sent, by tcptrace's names (see docs/flows.md).
    """

@overload
def flows(
    paths: Sequence[str | os.PathLike[str]],
    *,
    tunnels: bool = False,
    port: int | None = None,
    host: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    max_connections: int | None = None,
    threads: int = 1,
    as_rows: Literal[True],
) -> tuple[list[Row], FlowsSummary]: ...
def flows_to_parquet(
    paths: Sequence[str | os.PathLike[str]],
    output_path: str | os.PathLike[str],
    *,
    tunnels: bool = False,
    port: int | None = None,
    host: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    max_connections: int | None = None,
    threads: int = 1,
) -> FlowsSummary:
    """As `flows`, into a Parquet file, and without the table in memory. The file is there once it is whole."""

MOST_SHARES: Final[int]

def flows_share(
    paths: Sequence[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    share: int,
    shares: int,
    *,
    tunnels: bool = False,
    port: int | None = None,
    host: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    max_connections: int | None = None,
) -> FlowsSummary:
    """As `flows`, one share of at most MOST_SHARES, which are counted from 0: all packets are read, and those of the share's
    connections count; those of none are in one of the shares. The rows go to files in `folder`, for `flows_joined`.
    """

@overload
def flows_joined(folders: Sequence[str | os.PathLike[str]], *, as_rows: Literal[False] = False) -> pa.Table:
    """The rows of all shares, which are in these folders: those of `flows`, in the same order."""

@overload
def flows_joined(folders: Sequence[str | os.PathLike[str]], *, as_rows: Literal[True]) -> list[Row]: ...
def flows_joined_to_parquet(folders: Sequence[str | os.PathLike[str]], output_path: str | os.PathLike[str]) -> None:
    """As `flows_joined`, into a Parquet file, and without the table in memory. The file is there once it is whole."""

class AbTimes(TypedDict):
    min_s: float
    mean_s: float
    deviation_s: float | None
    median_s: float | None
    max_s: float

class AbFailures(TypedDict):
    connect: int
    receive: int | None
    length: int
    exceptions: int

class AbReport(TypedDict):
    version: str | None
    server_software: str | None
    server_hostname: str | None
    server_port: int | None
    tls_protocol: str | None
    tls_server_key: str | None
    tls_server_name: str | None
    document_path: str | None
    document_bytes: int | None
    document_length_varies: bool | None
    workers: int | None
    concurrency: int | None
    concurrency_achieved: int | None
    ramp_s: float | None
    duration_s: float | None
    complete_requests: int | None
    failed_requests: int | None
    failures: AbFailures | None
    write_errors: int | None
    non_2xx_responses: int | None
    keep_alive_requests: int | None
    keep_alive_aborts: int | None
    transferred_bytes: int | None
    html_bytes: int | None
    body_sent_bytes: int | None
    requests_per_second: float | None
    time_per_request_s: float | None
    time_per_request_across_all_s: float | None
    received_bytes_per_second: float | None
    sent_bytes_per_second: float | None
    total_bytes_per_second: float | None
    connect: AbTimes | None
    processing: AbTimes | None
    waiting: AbTimes | None
    total: AbTimes | None
    percentiles: list[tuple[int, float]]
    """(percent, seconds), to the millisecond."""
    warnings: list[str]
    messages: list[str]
    """Lines that are no part of a report, such as errors of sockets."""
    aborted_after_requests: int | None

def ab(text: bytes) -> AbReport:
    """What `ab` printed. When ab gave up, complete_requests is None and messages say why."""

def ab_requests(text: bytes) -> pa.Table:
    """What `ab -g FILE` wrote, in its order (by total_s): start_s (whole seconds since the epoch), connect_s, processing_s,
    total_s, waiting_s (each to the millisecond)."""

def ab_percentiles(text: bytes) -> pa.Table:
    """What `ab -e FILE` wrote: percent (0 to 100), total_s (to the microsecond)."""

class WrkLatency(TypedDict):
    mean_s: float | None
    deviation_s: float | None
    max_s: float | None
    within_deviation: float | None

class WrkRate(TypedDict):
    mean: float | None
    deviation: float | None
    max: float | None
    within_deviation: float | None

class WrkSocketErrors(TypedDict):
    connect: int
    read: int
    write: int
    timeout: int

class WrkReport(TypedDict):
    requested_duration_s: float | None
    url: str | None
    threads: int | None
    connections: int | None
    latency: WrkLatency | None
    thread_requests_per_second: WrkRate | None
    percentiles: list[tuple[float, float]]
    """(percent, seconds), with --latency."""
    requests: int | None
    duration_s: float | None
    read_bytes: float | None
    """To two decimals of wrk's own scale, so not whole."""
    socket_errors: WrkSocketErrors | None
    """None where wrk prints none, which is when there were none."""
    non_2xx_or_3xx_responses: int | None
    requests_per_second: float | None
    read_bytes_per_second: float | None

def wrk(text: bytes) -> WrkReport:
    """What `wrk` printed, with --latency or without."""

def stations(path: str | os.PathLike[str]) -> tuple[pa.Table, pa.Table]:
    """A file of `twinbed-probe stations` (docs/probe/STATIONS.md): its connections, and a row a packet and station, or call.

    Connections: connection (from 0), own_address, own_port, other_address, other_port. Rows, by time: station (qdisc, driver,
    softirq, socket; read, write, connect, close, wait), connection (null of wait), time_ns (real time; a call's entry), end_ns
    (a call's return), sequence (a packet's first, or where the stream stands after the call), bytes (payload, or what the call
    returned), flags (TCP's), thread, process. Metadata of the rows' schema: kernel, boot_id, share, clock (own, shared), lost,
    missed, beyond, unknown, clocks_within_ns, cut_off (why the file is not whole).
    """

def counters(path: str | os.PathLike[str]) -> pa.Table:
    """Every value of a snapshot file of `twinbed-probe counters`, snapshot by snapshot.

    Columns: snapshot, monotonic_s, realtime_s, source, key, value, text (of a setting: on, off). A source that the host does
    not have is a row with value null (and key null, if it was never there). Metadata of the schema: snapshots, cut_off
    (why a last partial snapshot is left out), unread_sources.
    """

def counter_differences(path: str | os.PathLike[str]) -> pa.Table:
    """What each key comes to over the file.

    Columns: source, key, kind (counter, gauge, setting, absent), first, last, difference (counters: last less first), mean
    (gauges: over the snapshots), seconds, first_text, last_text (settings), note (why a counter has no difference: "went
    backwards", "one value only", "not in the first snapshot", "not in the last snapshot", "source missing").
    """

def counter_intervals(path: str | os.PathLike[str]) -> pa.Table:
    """Counters from each snapshot to the next: snapshot (the earlier one), start_monotonic_s, end_monotonic_s, source, key,
    difference, note."""

def kernel_log(path: str | os.PathLike[str]) -> pa.Table:
    """The kernel's log in a snapshot file: sequence, seconds (since boot), level (emerg to debug), facility, text.
    Metadata of the schema: present (whether the file has the log), lost (records overwritten before they were read)."""

class ChainComparison(TypedDict):
    shared_edges: int
    only_first: int
    only_second: int
    different_edges: float | None
    """The share of all edges that only one chain has."""
    only_first_share: float | None
    """The share of the first chain's own transitions over edges that only it has."""
    only_second_share: float | None
    greatest_difference: float | None
    """Of the probabilities of a shared edge."""
    mean_difference: float | None
    """Over the shared edges, weighted by their use."""
    divergence_bits: float | None
    """Jensen-Shannon divergence of the rows, weighted by the states' use; a state that one chain lacks counts 1."""
    distance: float | None
    """Its square root: 0 for equal chains, 1 for chains without a common transition."""

class Walk(TypedDict):
    transitions: int
    invalid: int
    """Transitions that the chain does not have."""
    invalid_kinds: int
    """How many different ones."""
    log10_probability: float
    """-inf where a transition is invalid."""
    log10_valid: float
    """Over the valid transitions."""
    log10_per_call: float | None
    """Their mean; None where there is none."""

class Transitions:
    """Counts of what call followed what, for orders 1 to 3, over sequences with a break between one and the next. Immutable.

    Tables name a state by its calls, the latest last, with spaces between. Edges of a probability below `threshold` are
    dropped and their rows normalised again.
    """

    def __init__(self, grams: Sequence[tuple[str | None, str | None, str | None, str, int]]) -> None:
        """From rows of (before_3, before_2, before_1, call, count); None before the sequence's start. Equal rows add up."""
    @staticmethod
    def of_sequence(calls: Sequence[str]) -> Transitions: ...
    @staticmethod
    def pool(all: Sequence[Transitions]) -> Transitions: ...
    @property
    def calls(self) -> int: ...
    @property
    def sequences(self) -> int: ...
    @property
    def names(self) -> list[str]:
        """The calls, sorted."""
    def __eq__(self, other: object) -> bool: ...
    def grams(self) -> pa.Table:
        """before_3, before_2, before_1, call, count: what `Transitions(...)` takes."""
    def states(self, order: int = 1, threshold: float = 0.0) -> pa.Table:
        """A chain's nodes: state, count (transitions that leave it), share (of all), starts (sequences that begin with it)."""
    def edges(self, order: int = 1, threshold: float = 0.0) -> pa.Table:
        """A chain's edges: from, to (rows of `states`), state, call, next_state, count, probability, share (of all)."""
    def compare(self, other: Transitions, order: int = 1, threshold: float = 0.0) -> tuple[ChainComparison, pa.Table]:
        """This chain and another. The table has every edge of either: state, call, and count_, probability_ and share_ with
        first and second, null where that chain lacks the edge."""
    def walk(
        self,
        sequence: Transitions,
        order: int = 1,
        threshold: float = 0.0,
        *,
        alpha: float | None = None,
        support: int | None = None,
    ) -> Walk:
        """How likely a sequence with these counts is under this chain. With `alpha` each of `support` calls (those of both,
        unless said) is taken to have followed each state that often more."""

class TraceSummary(TypedDict):
    kind: str
    """strace, perf_script, trace_cmd, perf_data, sysdig, plain, probe_trace, probe_counts"""
    architecture: str
    calls: int
    """All of the trace, those cut off too."""
    first_ns: int | None
    """Entry of the first call, on the trace's own clock."""
    last_ns: int | None
    lost_events: int | None
    """As the tracer says; None where it says nothing."""
    cut_off: str | None
    """Why and where the trace ends before its end."""
    skipped: dict[str, int]
    """Lines, records and entries that are no call, by reason (exit, signal, other_event, resumed_without_start, ...)."""
    notes: dict[str, int]
    """Calls that are counted, but odd."""
    facts: list[tuple[str, str]]
    """What the tracer says about the trace."""

def system_calls(
    path: str | os.PathLike[str], *, architecture: str = "x86_64", skip: int = 0, limit: int | None = None
) -> tuple[list[tuple[str | None, Transitions, pa.Table]], TraceSummary]:
    """The system calls of a trace, by program (None where the trace does not say), sorted; threads are sequences of their own.

    Reads what strace, `perf script`, `perf record`, `trace-cmd report`, `sysdig -r` and `twinbed-probe syscalls` write, and
    plain sequences of numbers or names; also compressed by gzip or Zstandard, and from standard input as `-`. Of each
    sequence the first `skip` calls do not count, and then `limit` do. `architecture` (x86_64, aarch64) is that of numbers in
    traces that do not say.

    The table has a program's calls: call, calls, timed_calls (whose duration is known), seconds (in them; where a random sample
    was timed an estimate of what all took, null where none was), seconds_standard_error (0 where all were timed, null where
    fewer than two of more were), errors, bytes (that they gave back; null for calls that give no number of bytes).
    """

def system_call_names(architecture: str = "x86_64") -> dict[int, str]: ...
def time_stamp_counter_hz() -> float:
    """How fast this machine's time stamp counter counts, to about 5 in a million, against the clock that is never set. Takes
    50 ms."""
