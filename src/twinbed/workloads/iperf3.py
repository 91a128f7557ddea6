"""Workload ``iperf3``: TCP or UDP streams from every client to its server, as fast as possible or at a given rate.

Runs ``iperf3`` 3.9 or newer on both ends.  All numbers are sums over the interval records of both ends, without seconds to
omit. Summaries of iperf3 are not used, as some are wrong: its UDP jitter is only the last interval's, and its sums include
omitted seconds.  Numbers of data that arrived, was lost or came out of order are from the server's records, which the client
fetches; numbers of data that was sent or sent again are from the client's.

With one pair the values are the run's (host empty); with several, each client's, and the run's for what can be added up.
Table: ``intervals``, one row an interval and end.

If clients did not start together, rates, shares and means cover the seconds in which all sent; counts cover the whole run.
iperf3 does not record when its streams began. They began after the client's program. They began at the latest CONNECTED_S after
it, or when their seconds still fitted before its end. The end may take longer, as results come back over a link that may be
full. An interval is inside if it is inside for all these starts. Intervals are whole, so up to 1.25 s at either end are left
out.

A stream that arrived faster than it was sent has no rate, but a caution: its server's clock began late.

Limits: an interval that straddles the end is cut as iperf3 cuts it.  Loss is counted by sequence numbers, so datagrams lost
after the last one that arrived do not count; ``sent_datagrams`` and ``received_datagrams`` show them. Source: iperf3(1) and the
JSON of iperf 3.12.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field, model_validator

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.extracted import Extracted, artifacts_named
from twinbed.contracts.params import WorkloadParams
from twinbed.contracts.workload import Described, Workload, WorkloadPlan
from twinbed.metrics.iperf3 import METRICS, OF_A_TIME, SUMMED, UNITS
from twinbed.model.caution import Caution, Kind
from twinbed.model.clients import ClientTimes
from twinbed.model.declaration import Also
from twinbed.model.json import loads
from twinbed.model.services import Service
from twinbed.model.units import Duration, Rate, Size
from twinbed.readers.clients import Numbers, total, values
from twinbed.readers.iperf3 import Intervals, Report, counted_intervals, interval_row, interval_table, possible
from twinbed.readers.iperf3 import numbers as numbers_of

BEGIN_AND_END_S = 1.0
"""Time for server start, the control connection, and the exchange of results."""
LEAST_DATAGRAM_BYTES = 16
"""iperf3's header in every datagram: two times and a counter."""
LARGEST_DATAGRAM_BYTES = 65507
"""The largest payload in IPv4, without the headers of IP and UDP."""


class Iperf3Params(WorkloadParams):
    """Settings of the streams from clients to servers.

    TCP's congestion control is a setting of the hosts (``testbed.congestion_control``), or only of iperf3's sockets."""

    protocol: Literal["tcp", "udp"] = Field("tcp", description="tcp: as fast as possible; udp: at the rate")
    duration: Annotated[Duration, Also(("time", "seconds"))] = Field(
        10.0, ge=1, le=86400, description="time measured, in whole seconds, after the omitted ones"
    )
    omit: Duration = Field(
        0.0, ge=0, le=60, examples=["2s"], description="whole seconds at the start that do not count, such as slow start"
    )
    streams: Annotated[int, Also(("parallel", "threads", "flows"))] = Field(
        1, ge=1, le=128, examples=[4], description="parallel streams of each client"
    )
    rate: Annotated[Rate | None, Also(("bandwidth", "bitrate", "speed"))] = Field(
        None,
        gt=0,
        examples=["100mbit"],
        description="bits per second that each stream offers, without headers; null: as fast as possible",
    )
    payload: Annotated[Size | None, Also(("size", "length", "datagram"))] = Field(
        None,
        ge=1,
        le=2**20,
        examples=["1400B"],
        description="bytes of a datagram or TCP write; null: iperf3's default",
    )
    mss: int | None = Field(
        None, ge=88, le=9216, examples=[1400], description="TCP's maximum segment size, bytes; null: derived from the MTU"
    )
    congestion: Annotated[str | None, Also(("congestion_control", "cc"))] = Field(
        None,
        pattern="^[a-z_0-9]+$",
        examples=["cubic"],
        description="congestion control of iperf3's TCP sockets at both ends, such as cubic, checked against their reports; "
        "works also in containers that cannot have testbed.congestion_control; null: the hosts' own",
    )
    nagle: Literal["on", "off"] | None = Field(
        None,
        description="off: send small writes at once (TCP_NODELAY); on: delay them while data is unacknowledged; null: on",
    )
    socket_buffer: Size | None = Field(
        None,
        ge=2048,
        le=2**30,
        examples=["256KiB"],
        description="buffer of each socket; null: the kernel's default",
    )

    @model_validator(mode="after")
    def _possible(self) -> Iperf3Params:
        for name in ("duration", "omit"):
            if getattr(self, name) != int(getattr(self, name)):
                raise ValueError(f"{name} must be whole seconds, like iperf3's intervals; it is {getattr(self, name):g} s")
        if self.protocol == "udp":
            if self.mss is not None:
                raise ValueError("mss needs protocol: tcp; payload sets the size of datagrams")
            if self.congestion is not None:
                raise ValueError("congestion needs protocol: tcp; UDP sends at the given rate")
            if self.nagle is not None:
                raise ValueError("nagle needs protocol: tcp; UDP sends each datagram at once")
            if self.payload is not None and not LEAST_DATAGRAM_BYTES <= self.payload <= LARGEST_DATAGRAM_BYTES:
                raise ValueError(
                    f"payload of a datagram must be {LEAST_DATAGRAM_BYTES} (iperf3's header) to {LARGEST_DATAGRAM_BYTES} bytes,"
                    f" not {self.payload}"
                )
        return self

    def estimate_seconds(self) -> float:
        return self.omit + self.duration + BEGIN_AND_END_S


PORT = 5201
REPORT = "iperf3.json"
INTERVAL_S = 1
GRACE_S = 30.0
"""Time to connect, and for the server's results to come back over a full link."""


def workload_plan(params: Iperf3Params, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
    return WorkloadPlan(
        servers=[
            Command(
                server,
                ("iperf3", "-s", "-p", str(PORT), "-J", "-i", str(INTERVAL_S)),
                stdout="iperf3-server.json",
                ready=Ready(listening=PORT),
            )
            for _client, server, _address in pairs
        ],
        clients=[
            Command(
                client,
                _client_command(params, address),
                stdout=REPORT,
                limit_s=params.omit + params.duration + GRACE_S,
            )
            for client, _server, address in pairs
        ],
    )


def _client_command(params: Iperf3Params, address: str) -> tuple[str, ...]:
    rate = params.rate if params.rate is not None else 0
    return (
        *("iperf3", "-c", address, "-p", str(PORT), "-J", "--get-server-output", "-i", str(INTERVAL_S)),
        *("-t", str(int(params.duration)), "-O", str(int(params.omit)), "-P", str(params.streams)),
        # Without -b, UDP would go at 1 Mbit/s.
        *(("-u", "-b", str(rate)) if params.protocol == "udp" else (("-b", str(rate)) if rate else ())),
        *(("-l", str(params.payload)) if params.payload is not None else ()),
        *(("-M", str(params.mss)) if params.mss is not None else ()),
        *(("-N",) if params.nagle == "off" else ()),
        *(("-C", params.congestion) if params.congestion is not None else ()),
        *(("-w", str(params.socket_buffer)) if params.socket_buffer is not None else ()),
    )


CONNECTED_S = 0.25
"""The latest assumed start of a client's streams after its program's start."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The records of one end of a client's streams, with omitted intervals, and the times of the client's program."""

    intervals: Intervals
    times: ClientTimes

    @property
    def seconds(self) -> float:
        return math.fsum(interval["sum"]["seconds"] for interval in self.intervals)

    @property
    def latest_start_s(self) -> float:
        unknown_s = self.times.end_s - self.times.start_s - self.seconds
        return self.times.start_s + min(max(0.0, unknown_s), CONNECTED_S)

    @property
    def earliest_end_s(self) -> float:
        return min(self.times.end_s, self.times.start_s + self.seconds)

    def within(self, start_s: float, end_s: float) -> Intervals:
        """Return the counted intervals that are between the two times for all possible starts of the streams."""
        inside, at = [], 0.0
        for interval in self.intervals:
            until = at + interval["sum"]["seconds"]
            counted = not interval["sum"]["omitted"] and interval["sum"]["seconds"] > 0
            if counted and self.times.start_s + at >= start_s and self.latest_start_s + until <= end_s:
                inside.append(interval)
            at = until
        return inside


def common(senders: Sequence[Streams]) -> tuple[float, float]:
    """Return the start and end of the time in which all clients certainly sent, with omitted seconds. The end is before the
    start if there is no such time."""
    return max(sender.latest_start_s for sender in senders), min(sender.earliest_end_s for sender in senders)


@dataclass(frozen=True, slots=True)
class Client:
    """The measurements of one pair: metric -> value, and rows of the table ``intervals``."""

    host: str
    numbers: Numbers
    cautions: Sequence[Caution]
    rows: Sequence[Mapping[str, object]]
    report: Report


def read(params: Iperf3Params, artifacts: Path, times: Sequence[ClientTimes] = ()) -> Extracted:
    """Read the reports. ``times``: of clients that did not start together; rates and means then cover the time in which all
    sent. Raises OSError, ValueError or LookupError where a report is missing or not iperf3's."""
    files = artifacts_named(artifacts, REPORT)
    clients = [_client(params, file) for file in files]
    rows = [row for client in clients for row in client.rows]
    tables = {"intervals": interval_table(rows)} if rows else {}
    cautions = [caution for client in clients for caution in client.cautions]
    of_each = [client.numbers for client in clients]
    of_all = together(of_each) if len(clients) > 1 else {}
    if times:
        parts, caution = _overlapping(params, clients, times)
        cautions.append(caution)
        if parts:
            of_each = [_of_part(whole, part) for whole, part in zip(of_each, parts, strict=True)]
            of_all = _of_part(of_all, together(parts))
    named = [(client.host, numbers) for client, numbers in zip(clients, of_each, strict=True)]
    return Extracted(list(values(named, UNITS, lambda _: of_all)), tables, cautions)


def _of_part(whole: Numbers, part: Numbers) -> dict[str, float | None]:
    return {name: part[name] if name in OF_A_TIME else number for name, number in whole.items()}


def _overlapping(
    params: Iperf3Params, clients: Sequence[Client], times: Sequence[ClientTimes]
) -> tuple[Sequence[Numbers], Caution]:
    """Return each client's numbers of the time in which all sent; empty where an end of a client has no interval in it."""
    ran = {client_times.host: client_times for client_times in times}
    ends = [
        (
            Streams(client.report["intervals"], ran[client.host]),
            Streams(client.report["server_output_json"]["intervals"], ran[client.host]),
        )
        for client in clients
    ]
    start_s, end_s = common([sender for sender, _ in ends])
    inside = [(sender.within(start_s, end_s), receiver.within(start_s, end_s)) for sender, receiver in ends]
    if not all(sent and received for sent, received in inside):
        detail = "not every client has a full second while all sent: rates, losses and means cover all seconds"
        return (), Caution(Kind.SKEWED_START, detail)
    least_s = min(math.fsum(interval["sum"]["seconds"] for interval in received) for _, received in inside)
    of_whole = f"at least {least_s:.3g} of each client's {params.duration:g} s"
    parts = [_numbers(params, *of_part, client.report) for client, of_part in zip(clients, inside, strict=True)]
    return parts, Caution(Kind.SKEWED_START, f"rates, losses and means cover the seconds in which all sent: {of_whole}")


def _numbers(params: Iperf3Params, sent: Intervals, received: Intervals, report: Report) -> dict[str, float | None]:
    """Return every metric of the protocol. A stream that arrived faster than it was sent has no rate: on a busy machine a
    server may start its clock when most data has arrived."""
    numbers: dict[str, float | None] = {
        **dict.fromkeys(asked(params)),
        **dict(numbers_of(sent, received, report["end"], udp=params.protocol == "udp")),
    }
    if sent and received and not possible(sent, received):
        numbers |= dict.fromkeys(("goodput", "goodput_sd"))
    return numbers


def _client(params: Iperf3Params, file: Path) -> Client:
    host = file.parent.name
    text = file.read_text(errors="replace")
    try:
        report: Report = loads(text)
        sent, received = counted_intervals(report["intervals"]), counted_intervals(report["server_output_json"]["intervals"])
    except ValueError as error:
        raise ValueError(f"{file}: not JSON: {error}: {text[:200]!r}") from None
    except KeyError as error:
        why = report.get("error") or text[:200]
        raise ValueError(f"{file}: iperf3 gave no {error}: {why}") from None
    if params.congestion is not None:
        _check_congestion(params.congestion, report["end"], file)
    cautions = []
    if not sent or not received:
        cautions.append(Caution(Kind.UNREADABLE, f"{host}: no interval counts: the streams ended in the omitted seconds"))
    received_s = math.fsum(interval["sum"]["seconds"] for interval in received)
    if received and received_s < 0.98 * params.duration:
        cautions.append(Caution(Kind.CUT_SHORT, f"{received_s:.3g} s of {params.duration:g} s were received ({host})"))
    numbers = _numbers(params, sent, received, report)
    if sent and received and not possible(sent, received):
        arrived = math.fsum(interval["sum"]["bytes"] for interval in received)
        detail = (
            f"{host}: {arrived:,.0f} bytes in {received_s:.3g} s by the server's clock, faster than they were sent: no rate"
        )
        cautions.append(Caution(Kind.UNREADABLE, detail))
    rows = [
        interval_row(host, end, interval) for end, counted in (("client", sent), ("server", received)) for interval in counted
    ]
    return Client(host, numbers, cautions, rows, report)


def _check_congestion(asked: str, end: Mapping[str, object], file: Path) -> None:
    """Raise ValueError for another congestion control than asked; iperf3 reads each socket's (getsockopt, TCP_CONGESTION)."""
    for which in ("sender", "receiver"):
        used = end.get(f"{which}_tcp_congestion")
        if used != asked:
            raise ValueError(f"{file}: the {which} should use the congestion control {asked}; it reports {used}")


def asked(params: Iperf3Params) -> list[str]:
    """Return the metrics of this protocol."""
    of_tcp = {"tcp_retransmissions", "tcp_rtt_mean", "tcp_cwnd_mean"}
    of_udp = {name for name in UNITS if "datagrams" in name} | {"loss", "effective_throughput", "interarrival_jitter"}
    return [name for name in UNITS if name not in (of_tcp if params.protocol == "udp" else of_udp)]


def together(clients: Sequence[Numbers]) -> dict[str, float | None]:
    """Return the run's numbers from its clients': sums, and numbers that follow from sums. Missing where a part is missing."""
    run = {name: total([client[name] for client in clients]) for name in clients[0] if name in SUMMED}
    if "loss" in clients[0]:
        missed, came = run["lost_datagrams"], run["received_datagrams"]
        run["loss"] = missed / (missed + came) if missed is not None and came is not None and missed + came else None
        jitters = [client["interarrival_jitter"] for client in clients]
        run["interarrival_jitter"] = fmean(jitter for jitter in jitters if jitter is not None) if None not in jitters else None
    return run


class Iperf3(Workload[Iperf3Params]):
    """The workload."""

    name = "iperf3"
    params = Iperf3Params
    summary = "bulk streams from clients to servers, TCP or UDP (iperf3): goodput, loss, jitter, retransmissions"
    also = ("iperf", "netperf", "nuttcp", "bulk", "tcp", "udp", "stream", "throughput", "bandwidth")
    files = ("iperf3*",)
    raw = "iperf3's whole report, interval by interval"
    metrics = METRICS
    work = "received_bytes"
    rate = "goodput"

    def plan(self, params: Iperf3Params, pairs: Sequence[tuple[str, str, str]]) -> WorkloadPlan:
        return workload_plan(params, pairs)

    def services(self, params: Iperf3Params) -> Sequence[Service]:
        return [Service("tcp", PORT), *([Service("udp", PORT)] if params.protocol == "udp" else [])]

    def parse(self, params: Iperf3Params, artifacts: Path) -> Extracted:
        return read(params, artifacts)

    def parse_overlap(self, params: Iperf3Params, artifacts: Path, clients: Sequence[ClientTimes]) -> Extracted:
        return read(params, artifacts, clients)

    def described(self, params: Iperf3Params) -> Described:
        """Return the metrics of this protocol: a TCP stream loses no datagrams, and datagrams have no window."""
        names = asked(params)
        return Described([metric for metric in self.metrics if metric.name in names], self.work, self.rate)


iperf3 = Iperf3()
