"""Raw artifacts into tables. Paths or bytes in, `pyarrow.Table` and dicts out; the GIL is not held meanwhile.

Times are seconds, sizes bytes. Missing is null or None, never 0. An artifact that cannot be read raises `ArtifactError`,
a file that cannot be opened `OSError`.
"""

import os
from collections.abc import Sequence
from typing import TypedDict

import pyarrow as pa

__version__: str

class ArtifactError(ValueError):
    """An artifact that cannot be read: which file, where in it, what was expected there."""

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
    non_ip_packets: int
    super_packets: int
    """Packets whose IP length is above the MTU: captured before segmentation or after merging."""
    wire_packets: int
    """Packets on the wire that all packets stand for."""
    interfaces: int
    dropped_packets: int | None
    """As a pcapng file says; a pcap file cannot."""
    skipped: dict[str, int]
    """Packets and records that are in no row, by reason (last_record_cut_off, tcp_header_cut_off, ...)."""
    notes: dict[str, int]
    """Packets that are in a row, but odd."""

def connections(
    path: str | os.PathLike[str], *, mtu: int = 1500, udp_timeout_s: float = 60.0, tunnels: bool = False
) -> tuple[pa.Table, CaptureSummary]:
    """One row per connection of a pcap or pcapng file, in the order of their first packets.

    The file may be compressed by gzip or Zstandard; `-` is standard input. With `tunnels`, packets inside IP-in-IP, GRE and
    VXLAN count instead of those that carry them.

    Columns: protocol, originator_address, originator_port, responder_address, responder_port, start_s, start_ns,
    duration_s, complete, reset, and for `originator_` and `responder_` each: packets, bytes (IP), frame_bytes,
    payload_bytes, unique_payload_bytes, retransmitted_segments, retransmitted_bytes, retransmitted_syn_fin,
    out_of_order_segments, pure_acks, data_segments, max_segment_bytes, syn_segments, fin_segments, rst_segments,
    keep_alive_segments, zero_window_probes, super_packets, wire_packets. Those of TCP alone are null for UDP.

    tcptrace's "rexmt data pkts" is retransmitted_segments; its "rexmt data bytes" is retransmitted_bytes +
    retransmitted_syn_fin.
    """

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

    The table has a program's calls: call, calls, timed_calls (whose duration is known), seconds (in them), errors.
    """

def system_call_names(architecture: str = "x86_64") -> dict[int, str]: ...
