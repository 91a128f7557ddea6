"""What the workload ``iperf3`` runs: one server process for each server, one client process for each client."""

from __future__ import annotations

from collections.abc import Sequence

from twinbed.contracts.command import Command, Ready
from twinbed.contracts.workload import WorkloadPlan
from twinbed.workloads.iperf3.params import Iperf3Params

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
