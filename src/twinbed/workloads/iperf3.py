"""Workload ``iperf3``: TCP or UDP streams from every client to its server, as fast as they go or at a given rate.

Runs ``iperf3`` 3.9 or newer on both ends.  Numbers are sums over the interval records that either end made, not iperf3's own
summaries, some of which are wrong: its UDP jitter is that of the last interval alone, and sums count what was to be omitted.
What arrived, was lost or came out of order is from the server's records, which the client fetches; what was sent and sent again
is from the client's.  The seconds to omit are in neither.

With one pair the values are the run's (host empty); with several, each client's, and the run's for what can be added up.
Tables: ``intervals``, one row an interval and end.

Of clients that did not start together, rates, shares and means are those of the seconds in which all sent (``together``);
counts are those of the whole run.

A stream that arrived faster than it was sent has no rate, but a caution: its server's clock began late.

Limits: an interval that straddles the end is as iperf3 cuts it.  Loss is by sequence numbers, so that what never arrived after
the last datagram that did is not counted; ``sent_datagrams`` and ``received_datagrams`` tell.
Source: iperf3(1) and the JSON of iperf 3.12.

What iperf3 wrote, as values, a table of intervals and cautions.

Which intervals of iperf3's reports lie in the time in which all clients sent.

iperf3 does not tell when its streams began. They began no sooner than the client's program, and no later than would leave
their seconds before its end, nor than CONNECTED_S after its start: what the end takes beyond (results come back over a link
that may be full) is no reason to think so. An interval is inside where it is inside whenever the streams of any client began.
Intervals are whole, so that up to one and a quarter second at either end of a client's time is left out.

The settings of the workload ``iperf3``.

What the workload ``iperf3`` runs: one server process for each server, one client process for each client.
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
from twinbed.contracts.extracted import Extracted
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
"""Server start, the control connection, and the exchange of results, beside the time measured."""
LEAST_DATAGRAM_BYTES = 16
"""iperf3's own header in every datagram: two times and a counter."""
LARGEST_DATAGRAM_BYTES = 65507
"""IPv4's, less the headers of IP and UDP."""


class Iperf3Params(WorkloadParams):
    """What clients send to servers. TCP's congestion control is a setting of the hosts (``testbed.congestion_control``), or of
    iperf3's sockets alone."""

    protocol: Literal["tcp", "udp"] = Field("tcp", description="tcp, as fast as it goes; or udp")
    duration: Annotated[Duration, Also(("time", "seconds"))] = Field(
        10.0, ge=1, le=86400, description="seconds measured, whole, after those omitted"
    )
    omit: Duration = Field(
        0.0, ge=0, le=60, examples=["2s"], description="whole seconds at the start that are not counted, such as slow start"
    )
    streams: Annotated[int, Also(("parallel", "threads", "flows"))] = Field(
        1, ge=1, le=128, examples=[4], description="parallel streams of each client"
    )
    rate: Annotated[Rate | None, Also(("bandwidth", "bitrate", "speed"))] = Field(
        None,
        gt=0,
        examples=["100mbit"],
        description="bits per second offered by each stream, without headers; null: as fast as it goes",
    )
    payload: Annotated[Size | None, Also(("size", "length", "datagram"))] = Field(
        None, ge=1, le=2**20, examples=["1400B"], description="bytes of a datagram, or of each write to TCP; null: iperf3's own"
    )
    mss: int | None = Field(
        None, ge=88, le=9216, examples=[1400], description="TCP's maximum segment size, bytes; null: as the MTU has it"
    )
    congestion: Annotated[str | None, Also(("congestion_control", "cc"))] = Field(
        None,
        pattern="^[a-z_0-9]+$",
        examples=["cubic"],
        description="TCP's congestion control of iperf3's sockets, at both ends, held against what each reports; also where "
        "containers may not be given it by testbed.congestion_control, such as cubic; null: the hosts' own",
    )
    nagle: Literal["on", "off"] | None = Field(
        None,
        description="off: small writes are sent at once (TCP_NODELAY), not held back while anything is unacknowledged; null: "
        "iperf3's own, which is on",
    )
    socket_buffer: Size | None = Field(
        None, ge=2048, le=2**30, examples=["256KiB"], description="of each socket, at both ends; null: the kernel's own"
    )

    @model_validator(mode="after")
    def _possible(self) -> Iperf3Params:
        for name in ("duration", "omit"):
            if getattr(self, name) != int(getattr(self, name)):
                raise ValueError(f"{name} must be whole seconds, as iperf3's intervals are; it is {getattr(self, name):g} s")
        if self.protocol == "udp":
            if self.mss is not None:
                raise ValueError("mss is TCP's; a datagram's size is payload")
            if self.congestion is not None:
                raise ValueError("congestion is TCP's; UDP goes at the rate offered")
            if self.nagle is not None:
                raise ValueError("nagle is TCP's; UDP sends each datagram at once")
            if self.payload is not None and not LEAST_DATAGRAM_BYTES <= self.payload <= LARGEST_DATAGRAM_BYTES:
                raise ValueError(
                    f"a datagram's payload is {LEAST_DATAGRAM_BYTES} (iperf3's header) to {LARGEST_DATAGRAM_BYTES} bytes,"
                    f" not {self.payload}"
                )
        return self

    def estimate_seconds(self) -> float:
        return self.omit + self.duration + BEGIN_AND_END_S


PORT = 5201
REPORT = "iperf3.json"
INTERVAL_S = 1
GRACE_S = 30.0
"""For connecting, and for the server's results to come back over a link that is full."""


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
"""How long after its program's start a client's streams are taken to have begun at the latest."""


@dataclass(frozen=True, slots=True)
class Streams:
    """What one end of a client's streams wrote, omitted intervals with it, and when the client's program ran."""

    intervals: Intervals
    times: ClientTimes

    @property
    def seconds(self) -> float:
        return math.fsum(each["sum"]["seconds"] for each in self.intervals)

    @property
    def latest_start_s(self) -> float:
        unknown_s = self.times.end_s - self.times.start_s - self.seconds
        return self.times.start_s + min(max(0.0, unknown_s), CONNECTED_S)

    @property
    def earliest_end_s(self) -> float:
        return min(self.times.end_s, self.times.start_s + self.seconds)

    def within(self, start_s: float, end_s: float) -> Intervals:
        """The intervals, without those omitted, that are between the two moments whenever the streams began."""
        inside, at = [], 0.0
        for each in self.intervals:
            until = at + each["sum"]["seconds"]
            counted = not each["sum"]["omitted"] and each["sum"]["seconds"] > 0
            if counted and self.times.start_s + at >= start_s and self.latest_start_s + until <= end_s:
                inside.append(each)
            at = until
        return inside


def common(senders: Sequence[Streams]) -> tuple[float, float]:
    """From when to when all clients sent for certain, omitted seconds with them; the end is before the start where they never
    did."""
    return max(each.latest_start_s for each in senders), min(each.earliest_end_s for each in senders)


@dataclass(frozen=True, slots=True)
class Client:
    """What one pair measured: metric -> value; rows of the table ``intervals``."""

    host: str
    numbers: Numbers
    cautions: Sequence[Caution]
    rows: Sequence[Mapping[str, object]]
    report: Report


def read(params: Iperf3Params, artifacts: Path, times: Sequence[ClientTimes] = ()) -> Extracted:
    """``times``: of clients that did not start together; what is of a time is then of that in which all sent. Raises OSError,
    ValueError or LookupError where a report is not there or not what iperf3 writes."""
    files = sorted(artifacts.glob(f"*/{REPORT}"))
    if not files:
        raise FileNotFoundError(f"no {REPORT} in {artifacts}")
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
    """Each client's numbers of the time in which all sent; nothing where an end of one of them has no interval there."""
    ran = {each.host: each for each in times}
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
        detail = "no second of each client lies where all sent: rates, losses and means are of all seconds"
        return (), Caution(Kind.SKEWED_START, detail)
    least_s = min(math.fsum(each["sum"]["seconds"] for each in received) for _, received in inside)
    of_whole = f"at least {least_s:.3g} of each client's {params.duration:g} s"
    parts = [_numbers(params, *of_part, client.report) for client, of_part in zip(clients, inside, strict=True)]
    return parts, Caution(Kind.SKEWED_START, f"rates, losses and means are of the seconds in which all sent: {of_whole}")


def _numbers(params: Iperf3Params, sent: Intervals, received: Intervals, report: Report) -> dict[str, float | None]:
    """Every metric that the protocol has. A stream that arrived faster than it was sent has no rate: a server that a busy
    machine keeps waiting begins its clock when most has arrived already."""
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
        _hold_congestion(params.congestion, report["end"], file)
    cautions = []
    if not sent or not received:
        cautions.append(Caution(Kind.UNREADABLE, f"{host}: no interval was counted: the streams ended within what is omitted"))
    whole = math.fsum(each["sum"]["seconds"] for each in received)
    if received and whole < 0.98 * params.duration:
        cautions.append(Caution(Kind.CUT_SHORT, f"{whole:.3g} s of {params.duration:g} s were received ({host})"))
    numbers = _numbers(params, sent, received, report)
    if sent and received and not possible(sent, received):
        arrived = math.fsum(each["sum"]["bytes"] for each in received)
        detail = f"{host}: {arrived:,.0f} bytes in {whole:.3g} s by the server's clock, faster than they were sent: no rate"
        cautions.append(Caution(Kind.UNREADABLE, detail))
    rows = [interval_row(host, end, each) for end, counted in (("client", sent), ("server", received)) for each in counted]
    return Client(host, numbers, cautions, rows, report)


def _hold_congestion(asked: str, end: Mapping[str, object], file: Path) -> None:
    """iperf3 reads it back from the socket of each end (getsockopt, TCP_CONGESTION)."""
    for which in ("sender", "receiver"):
        used = end.get(f"{which}_tcp_congestion")
        if used != asked:
            raise ValueError(f"{file}: the {which} was to use the congestion control {asked}; it reports {used}")


def asked(params: Iperf3Params) -> list[str]:
    """The metrics that this protocol has."""
    of_tcp = {"tcp_retransmissions", "tcp_rtt_mean", "tcp_cwnd_mean"}
    of_udp = {name for name in UNITS if "datagrams" in name} | {"loss", "effective_throughput", "interarrival_jitter"}
    return [name for name in UNITS if name not in (of_tcp if params.protocol == "udp" else of_udp)]


def together(clients: Sequence[Numbers]) -> dict[str, float | None]:
    """The run's numbers from its clients': sums, and what follows from sums. Missing where a part is missing."""
    run = {name: total([client[name] for client in clients]) for name in clients[0] if name in SUMMED}
    if "loss" in clients[0]:
        missed, came = run["lost_datagrams"], run["received_datagrams"]
        run["loss"] = missed / (missed + came) if missed is not None and came is not None and missed + came else None
        jitters = [client["interarrival_jitter"] for client in clients]
        run["interarrival_jitter"] = fmean(each for each in jitters if each is not None) if None not in jitters else None
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
        """A stream has no loss of datagrams, and datagrams have no window."""
        names = asked(params)
        return Described([metric for metric in self.metrics if metric.name in names], self.work, self.rate)


iperf3 = Iperf3()
