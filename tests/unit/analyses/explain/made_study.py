"""Studies of two testbeds whose kernels counted what a test says."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from benchmarks.simulated.little import InMemory, record

from twinbed.model.clients import ClientTimes
from twinbed.model.run import Level
from twinbed.model.tables import Outline

PACKETS = 10_000
MTU_BYTES = 1500
BUSY: Mapping[str, float] = {
    "snmp:Tcp.OutSegs": PACKETS,
    "snmp:Ip.InReceives": PACKETS,
    "snmp:Ip.OutRequests": PACKETS,
    "net/dev:eth0.rx_packets": PACKETS,
    "net/dev:eth0.rx_bytes": 1400.0 * PACKETS,
    "net/dev:eth0.tx_packets": PACKETS,
    "net/dev:eth0.tx_bytes": 60.0 * PACKETS,
}
"""Of a host that receives full packets one by one, in ten seconds."""
CLIENT = ClientTimes("client1", 0.0, 10.0)


def study(
    counted: Mapping[str, Mapping[str, float]],
    rates: Mapping[str, float],
    *,
    runs: int = 5,
    levels: Sequence[Mapping[str, Level]] = ({},),
    cpus: Mapping[str, str] | None = None,
    states: Mapping[str, Mapping[str, str]] | None = None,
    values: Mapping[str, Mapping[tuple[str, str, str], float]] | None = None,
    factors: Mapping[str, Sequence[Level]] | None = None,
    rate_of: Mapping[tuple[str, str], float] | None = None,
    waited: Mapping[str, float] | None = None,
    seed: int = 1,
) -> InMemory:
    """``counted``: testbed -> what its servers counted beyond BUSY. ``rates``: requests a second. ``values``: testbed ->
    (metric, host, direction) -> value. ``rate_of``: testbed and level -> a rate that a cell has instead. ``waited``: testbed ->
    the share of time in which programs waited for idle CPUs. Noise is 2 %."""
    noise = random.Random(seed)
    records, counters, metrics, facts, applied = [], [], [], [], []
    for replicate in range(runs):
        for testbed, rate in rates.items():
            for cell in levels:
                at = len(records)
                one = record(testbed, replicate, at, {"testbed": testbed, **cell})
                settings: dict[str, Any] = {
                    "levels": {**cell},
                    "testbed": {"name": testbed, "kind": "container", "offload": None, "tso": "off", "gro": "on"},
                    "workload": {"kind": "http", "payload": 500, "duration": 2.0},
                    "topology": {"kind": "pairs", "pairs": 1, "link": {"mtu": MTU_BYTES, "rate": None}},
                    "instruments": {"counters": {"kind": "counters", "interval": 1.0}},
                }
                records.append(replace(one, id=f"{testbed}-{at}", settings=settings, clients=(CLIENT,)))
                run = records[-1].id
                for host in ("client1", "server1"):
                    own = counted[testbed] if host == "server1" else {}
                    for key, count in {**BUSY, **own}.items():
                        row = {"run": run, "host": host, "key": key, "difference": count * noise.gauss(1, 0.001)}
                        counters.append(row | {"seconds": 10.0})
                    facts.append({"run": run, "place": host, "fact": "cpu", "value": (cpus or {}).get(testbed, "EPYC")})
                    for setting, found in (states or {}).get(testbed, {}).items():
                        applied.append({"run": run, "subject": host, "setting": setting, "found": found})
                if waited is not None:
                    share = str(waited[testbed] * noise.gauss(1, 0.02))
                    facts.append({"run": run, "place": "machine", "fact": "idle wake-ups share", "value": share})
                mean = next(
                    (r for (name, level), r in (rate_of or {}).items() if name == testbed and level in cell.values()), rate
                )
                known = {("requests_per_second", "", ""): mean, **(values or {}).get(testbed, {})}
                for (metric, host, direction), value in known.items():
                    metrics.append(
                        {
                            "run": run,
                            "host": host,
                            "direction": direction,
                            "metric": metric,
                            "unit": "1/s" if metric == "requests_per_second" else "s/request",
                            "layer": "application",
                            "scale": "ratio",
                            "headline": metric == "requests_per_second",
                            "description": "",
                            "value": value * noise.gauss(1, 0.02),
                        }
                    )
    tables = {
        "counters": pa.Table.from_pylist(counters),
        "metrics": pa.Table.from_pylist(metrics),
        "facts": pa.Table.from_pylist(facts),
    }
    if applied:
        tables["applied"] = pa.Table.from_pylist(applied)
    testbeds = tuple(rates)
    data: Any = {"factors": {"testbed": list(rates), **(factors or {})}}
    return InMemory(tables, Outline("s", testbeds, testbeds[0], data=data), records)
