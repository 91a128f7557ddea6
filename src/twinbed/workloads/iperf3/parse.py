"""What iperf3 wrote, as values, a table of intervals and cautions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from twinbed.contracts.extracted import Extracted
from twinbed.metrics.iperf3 import OF_A_TIME, SUMMED, UNITS
from twinbed.model.caution import Caution, Kind
from twinbed.model.clients import ClientTimes
from twinbed.model.json import loads
from twinbed.readers.clients import Numbers, total, values
from twinbed.readers.iperf3 import Intervals, Report, counted_intervals, interval_row, interval_table, possible
from twinbed.readers.iperf3 import numbers as numbers_of
from twinbed.workloads.iperf3.params import Iperf3Params
from twinbed.workloads.iperf3.plan import REPORT
from twinbed.workloads.iperf3.together import Streams, common


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
