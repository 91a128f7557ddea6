"""What ``iperf3 -J --get-server-output`` writes, as far as iperf3 3.12 has it and a model has something to say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from twinbed.testbeds.model.datagrams import Came, Offered
from twinbed.testbeds.model.streams import Sent, Streamed

T = TypeVar("T")
_Row = Mapping[str, object]


def of_tcp(streamed: Streamed, omit_s: int) -> str:
    def sent(each: Sent) -> dict[str, float]:
        return {
            "bytes": each.sent_bytes,
            "retransmits": each.retransmissions,
            "snd_cwnd": each.cwnd_bytes,
            "rtt": round(each.rtt_s * 1e6),
        }

    return _report(
        _intervals(streamed.intervals, sent, ("bytes", "retransmits"), omit_s),
        _intervals(streamed.intervals, lambda each: {"bytes": each.received_bytes}, ("bytes",), omit_s),
        streamed.client_share,
        streamed.server_share,
    )


def of_udp(came: Came, offered: Offered, omit_s: int) -> str:
    size = offered.payload_bytes
    sent = _intervals(
        came.intervals, lambda each: {"bytes": each.sent * size, "packets": each.sent}, ("bytes", "packets"), omit_s
    )
    received = _intervals(
        came.intervals,
        lambda each: {
            "bytes": each.received * size,
            "packets": each.received + each.lost,
            "lost_packets": each.lost,
            "jitter_ms": each.jitter_s * 1000,
            "out_of_order": 0,
        },
        ("bytes", "packets", "lost_packets"),
        omit_s,
        mean="jitter_ms",
    )
    return _report(sent, received, came.client_share, came.server_share)


def _intervals(
    seconds: Sequence[Sequence[T]],
    row: Callable[[T], dict[str, float]],
    summed: Sequence[str],
    omit_s: int,
    mean: str | None = None,
) -> list[_Row]:
    """One a second. Those omitted are counted from 0, and so are those after them."""
    intervals: list[_Row] = []
    for number, of_streams in enumerate(seconds):
        omitted = number < omit_s
        start = number if omitted else number - omit_s
        span = {"start": start, "end": start + 1, "seconds": 1}
        rows = [{**row(each), "omitted": omitted} for each in of_streams]
        together: dict[str, object] = {name: sum(each[name] for each in rows) for name in summed}
        if mean is not None:
            together[mean] = fmean(each[mean] for each in rows)
        streams = [{**span, **each, "bits_per_second": 8 * each["bytes"]} for each in rows]
        total = {**span, **together, "bits_per_second": 8 * sum(each["bytes"] for each in rows), "omitted": omitted}
        intervals.append({"streams": streams, "sum": total})
    return intervals


def _report(sent: Sequence[_Row], received: Sequence[_Row], client_share: float, server_share: float) -> str:
    cpu = {"host_total": 100 * client_share, "remote_total": 100 * server_share}
    report = {
        "start": {"version": "twinbed's model of iperf 3.12"},
        "intervals": sent,
        "end": {"cpu_utilization_percent": cpu},
        "server_output_json": {"intervals": received},
    }
    return json.dumps(report, indent=1) + "\n"
