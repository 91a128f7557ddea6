"""What iperf3 wrote, as values, a table of intervals and cautions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from twinbed.contracts.extracted import Extracted
from twinbed.model.caution import Caution, Kind
from twinbed.readers.clients import Numbers, total, values
from twinbed.workloads.iperf3.metrics import SUMMED, UNITS
from twinbed.workloads.iperf3.params import Iperf3Params
from twinbed.workloads.iperf3.plan import REPORT

SHORT = 0.5
"""Intervals shorter than this share of the longest are left out of what is taken over intervals: the last may be a sliver."""

IMPOSSIBLE = 1.25
"""Times the rate at which a stream was sent: it cannot arrive faster, but for what waited on the way at the start."""

Intervals = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Client:
    """What one pair measured: metric -> value; rows of the table ``intervals``."""

    host: str
    numbers: Numbers
    cautions: Sequence[Caution]
    rows: Sequence[Mapping[str, Any]]


def read(params: Iperf3Params, artifacts: Path) -> Extracted:
    """Raises OSError, ValueError or LookupError where a report is not there or not what iperf3 writes."""
    files = sorted(artifacts.glob(f"*/{REPORT}"))
    if not files:
        raise FileNotFoundError(f"no {REPORT} in {artifacts}")
    clients = [_client(params, file) for file in files]
    rows = [row for client in clients for row in client.rows]
    tables = {"intervals": interval_table(rows)} if rows else {}
    found = values([(client.host, client.numbers) for client in clients], UNITS, together)
    return Extracted(list(found), tables, [caution for client in clients for caution in client.cautions])


def _client(params: Iperf3Params, file: Path) -> Client:
    host = file.parent.name
    text = file.read_text(errors="replace")
    try:
        report = json.loads(text)
        sent, received = _counted(report["intervals"]), _counted(report["server_output_json"]["intervals"])
    except ValueError as error:
        raise ValueError(f"{file}: not JSON: {error}: {text[:200]!r}") from None
    except KeyError as error:
        said = report.get("error") or text[:200]
        raise ValueError(f"{file}: iperf3 gave no {error}: {said}") from None
    cautions = []
    if not sent or not received:
        cautions.append(Caution(Kind.UNREADABLE, f"{host}: no interval was counted: the streams ended within what is omitted"))
    whole = math.fsum(each["sum"]["seconds"] for each in received)
    if received and whole < 0.98 * params.duration:
        cautions.append(Caution(Kind.CUT_SHORT, f"{whole:.3g} s of {params.duration:g} s were received ({host})"))
    numbers: dict[str, float | None] = {
        **dict.fromkeys(_asked(params)),
        **dict(_numbers(params, sent, received, report["end"])),
    }
    if sent and received and not _possible(sent, received):
        # A server that a busy machine keeps waiting begins its clock when most has arrived already.
        numbers |= dict.fromkeys(("goodput", "goodput_sd"))
        arrived = math.fsum(each["sum"]["bytes"] for each in received)
        detail = f"{host}: {arrived:,.0f} bytes in {whole:.3g} s by the server's clock, faster than they were sent: no rate"
        cautions.append(Caution(Kind.UNREADABLE, detail))
    rows = [_row(host, end, each) for end, found in (("client", sent), ("server", received)) for each in found]
    return Client(host, numbers, cautions, rows)


def _possible(sent: Intervals, received: Intervals) -> bool:
    """Whether the server's clock ran while the stream arrived."""

    def rate(intervals: Intervals) -> float:
        return math.fsum(each["sum"]["bytes"] for each in intervals) / math.fsum(each["sum"]["seconds"] for each in intervals)

    return rate(received) <= IMPOSSIBLE * rate(sent)


def _counted(intervals: Intervals) -> Intervals:
    return [each for each in intervals if not each["sum"]["omitted"] and each["sum"]["seconds"] > 0]


def _asked(params: Iperf3Params) -> list[str]:
    """The metrics that this protocol has."""
    of_tcp = {"tcp_retransmissions", "tcp_rtt_mean", "tcp_cwnd_mean"}
    of_udp = {name for name in UNITS if "datagrams" in name} | {"loss", "effective_throughput", "interarrival_jitter"}
    return [name for name in UNITS if name not in (of_tcp if params.protocol == "udp" else of_udp)]


def _numbers(params: Iperf3Params, sent: Intervals, received: Intervals, end: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    cpu = end.get("cpu_utilization_percent", {})
    for name, key in (("sender_cpu_share", "host_total"), ("receiver_cpu_share", "remote_total")):
        if key in cpu:
            yield name, cpu[key] / 100
    if not sent or not received:
        return
    arrived, handed = (math.fsum(each["sum"]["bytes"] for each in found) for found in (received, sent))
    took, sending = (math.fsum(each["sum"]["seconds"] for each in found) for found in (received, sent))
    yield "received_bytes", arrived
    yield "goodput", 8 * arrived / took
    yield "sent_bytes", handed
    yield "send_rate", 8 * handed / sending
    yield "time_taken", took
    rates = [each["sum"]["bits_per_second"] for each in _long(received)]
    if len(rates) > 1:
        yield "goodput_sd", stdev(rates)
    if params.protocol == "udp":
        yield from _datagrams(sent, received, 8 * handed / sending)
    else:
        yield from _tcp(sent)


def _tcp(sent: Intervals) -> Iterator[tuple[str, float]]:
    yield "tcp_retransmissions", math.fsum(each["sum"]["retransmits"] for each in sent)
    streams = [stream for each in _long(sent) for stream in each["streams"]]
    yield "tcp_rtt_mean", fmean(stream["rtt"] for stream in streams) * 1e-6
    yield "tcp_cwnd_mean", fmean(stream["snd_cwnd"] for stream in streams)


def _datagrams(sent: Intervals, received: Intervals, rate: float) -> Iterator[tuple[str, float]]:
    """The server's ``packets`` are those that arrived and those that were missed."""
    went = math.fsum(each["sum"]["packets"] for each in sent)
    missed = math.fsum(each["sum"]["lost_packets"] for each in received)
    came = math.fsum(each["sum"]["packets"] for each in received) - missed
    yield "sent_datagrams", went
    yield "received_datagrams", came
    yield "lost_datagrams", missed
    if came + missed > 0:
        lost = missed / (came + missed)
        yield "loss", lost
        yield "effective_throughput", (1 - lost) * rate
    orders = [stream["out_of_order"] for each in received for stream in each["streams"] if "out_of_order" in stream]
    if orders:
        yield "out_of_order_datagrams", math.fsum(orders)
    jitters = [stream["jitter_ms"] for each in _long(received) for stream in each["streams"] if stream["packets"]]
    if jitters:
        yield "interarrival_jitter", fmean(jitters) * 1e-3


def _long(intervals: Intervals) -> Intervals:
    """Without slivers."""
    longest = max(each["sum"]["seconds"] for each in intervals)
    return [each for each in intervals if each["sum"]["seconds"] >= SHORT * longest]


def _row(host: str, end: str, interval: Mapping[str, Any]) -> dict[str, Any]:
    total = interval["sum"]
    jitter = total.get("jitter_ms")
    return {
        "host": host,
        "end": end,
        "start_s": total["start"],
        "seconds": total["seconds"],
        "bytes": total["bytes"],
        "retransmissions": total.get("retransmits"),
        "datagrams": total.get("packets"),
        "lost_datagrams": total.get("lost_packets"),
        "jitter_s": None if jitter is None else jitter * 1e-3,
    }


def interval_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    import pyarrow as pa

    whole, real = pa.int64(), pa.float64()
    kinds = {
        "host": pa.string(),
        "end": pa.string(),
        "start_s": real,
        "seconds": real,
        "bytes": whole,
        "retransmissions": whole,
        "datagrams": whole,
        "lost_datagrams": whole,
        "jitter_s": real,
    }
    return pa.Table.from_pylist(list(rows), schema=pa.schema(list(kinds.items())))


def together(clients: Sequence[Numbers]) -> dict[str, float | None]:
    """The run's numbers from its clients': sums, and what follows from sums. Missing where a part is missing."""
    run = {name: total([client[name] for client in clients]) for name in clients[0] if name in SUMMED}
    if "loss" in clients[0]:
        missed, came = run["lost_datagrams"], run["received_datagrams"]
        run["loss"] = missed / (missed + came) if missed is not None and came is not None and missed + came else None
        jitters = [client["interarrival_jitter"] for client in clients]
        run["interarrival_jitter"] = fmean(each for each in jitters if each is not None) if None not in jitters else None
    return run
