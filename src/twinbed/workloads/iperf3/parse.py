"""What iperf3 wrote, as values, a table of intervals and cautions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from twinbed.contracts.extracted import Extracted
from twinbed.metrics.iperf3 import SUMMED, UNITS
from twinbed.model.caution import Caution, Kind
from twinbed.readers.clients import Numbers, total, values
from twinbed.readers.iperf3 import counted_intervals, interval_row, interval_table, possible
from twinbed.readers.iperf3 import numbers as numbers_of
from twinbed.workloads.iperf3.params import Iperf3Params
from twinbed.workloads.iperf3.plan import REPORT


@dataclass(frozen=True, slots=True)
class Client:
    """What one pair measured: metric -> value; rows of the table ``intervals``."""

    host: str
    numbers: Numbers
    cautions: Sequence[Caution]
    rows: Sequence[Mapping[str, object]]


def read(params: Iperf3Params, artifacts: Path) -> Extracted:
    """Raises OSError, ValueError or LookupError where a report is not there or not what iperf3 writes."""
    files = sorted(artifacts.glob(f"*/{REPORT}"))
    if not files:
        raise FileNotFoundError(f"no {REPORT} in {artifacts}")
    clients = [_client(params, file) for file in files]
    rows = [row for client in clients for row in client.rows]
    tables = {"intervals": interval_table(rows)} if rows else {}
    metrics = values([(client.host, client.numbers) for client in clients], UNITS, together)
    return Extracted(list(metrics), tables, [caution for client in clients for caution in client.cautions])


def _client(params: Iperf3Params, file: Path) -> Client:
    host = file.parent.name
    text = file.read_text(errors="replace")
    try:
        report = json.loads(text)
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
    numbers: dict[str, float | None] = {
        **dict.fromkeys(asked(params)),
        **dict(numbers_of(sent, received, report["end"], udp=params.protocol == "udp")),
    }
    if sent and received and not possible(sent, received):
        # A server that a busy machine keeps waiting begins its clock when most has arrived already.
        numbers |= dict.fromkeys(("goodput", "goodput_sd"))
        arrived = math.fsum(each["sum"]["bytes"] for each in received)
        detail = f"{host}: {arrived:,.0f} bytes in {whole:.3g} s by the server's clock, faster than they were sent: no rate"
        cautions.append(Caution(Kind.UNREADABLE, detail))
    rows = [interval_row(host, end, each) for end, counted in (("client", sent), ("server", received)) for each in counted]
    return Client(host, numbers, cautions, rows)


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
