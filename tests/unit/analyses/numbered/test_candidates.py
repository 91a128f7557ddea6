"""What the analysis `anomaly` compares with the rate: names, sums over roles, and division by the work done."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from twinbed.analyses.anomaly.method import candidates
from twinbed.statistics.anomaly import Measure

RATES = {"r": 400.0}
HALVES = {"client1": 0.2, "client2": 0.4}


class Few:
    """The tables of one run that did 1000 requests at two pairs."""

    def __init__(self, metrics: list[tuple[str, str, str, float | None]], **tables: list[dict[str, Any]]) -> None:
        rows = [
            {"run": "r", "metric": metric, "host": host, "direction": "", "unit": unit, "layer": "host", "value": value}
            for metric, host, unit, value in metrics
        ]
        self.tables = {"metrics": rows, **tables}

    def table(self, name: str) -> pa.Table:
        return pa.Table.from_pylist(self.tables.get(name, []))


WORK = [
    ("requests", "", "1", 1000.0),
    ("requests_per_second", "", "1/s", 400.0),
    ("packets", "", "1", 7000.0),
    ("packets_per_request", "", "1/request", 7.0),
]


def found(tables: Few) -> dict[str, tuple[Measure, float | None]]:
    return {name: (of.measure, of.by_run["r"]) for name, of in candidates(tables, "requests_per_second", RATES).items()}  # type: ignore[arg-type]


def test_the_response_and_counts_that_are_there_by_the_work_are_left_out() -> None:
    others = [("requests_per_second", "client1", "1/s", 200.0), ("time_per_request", "", "s", 0.005), ("pages", "", "1", 3.0)]
    assert found(Few(WORK + others)) == {
        "requests": (Measure.LEVEL, 1000.0),
        "packets_per_request": (Measure.PER_WORK, 7.0),
        "time_per_request": (Measure.PER_WORK, 0.005),
        "pages": (Measure.LEVEL, 3.0),
    }


def test_hosts_of_a_role_are_summed_where_they_count_and_averaged_where_not() -> None:
    hosts = [
        *(("cpu_seconds", host, "s", 2.0) for host in ("client1", "client2")),
        *(("cpu_seconds_per_request", host, "s/request", 0.002) for host in ("client1", "client2")),
        *(("cpu_busy_share", host, "1", 0.2) for host in ("client1", "client2")),
        *(("rtt", host, "s", value) for host, value in (("client1", 0.1), ("client2", 0.3))),
        *(("drops_per_request", host, "1/request", value) for host, value in (("server1", 1.0), ("server2", None))),
        *(("drops", host, "1", value) for host, value in (("server1", 1.0), ("server2", None))),
    ]
    values = found(Few(WORK + hosts))
    assert values["cpu_seconds_per_request@client"] == (Measure.PER_WORK, pytest.approx(0.004))
    assert values["rtt@client"] == (Measure.PER_WORK, pytest.approx(0.2))
    assert values["drops_per_request@server"] == (Measure.PER_WORK, None)
    assert not {"cpu_busy_share@client", "cpu_seconds@client"} & set(values)


def test_what_is_the_whole_runs_with_one_pair_and_the_clients_with_several_is_one() -> None:
    few = Few([*WORK, ("connect_time_max", "", "s", 0.1)])
    of_one = few.tables["metrics"][-1] = few.tables["metrics"][-1] | {"layer": "application"}
    few.tables["metrics"] += [of_one | {"run": "two", "host": host, "value": value} for host, value in HALVES.items()]
    of = candidates(few, "requests_per_second", RATES)  # type: ignore[arg-type]
    assert of["connect_time_max"].by_run == {"r": 0.1, "two": pytest.approx(0.3)} and "connect_time_max@client" not in of
    assert (of["connect_time_max"].reported, of["packets_per_request"].reported) == (True, False)


def test_sums_of_events_are_left_out_where_their_rows_are_there() -> None:
    sums = [("netif_rx_events", "machine", "1", 10.0), ("netif_rx_events_per_request", "machine", "1/request", 0.01)]
    assert "netif_rx_events_per_request@machine" in found(Few(WORK + sums))
    row = {"run": "r", "host": "machine", "source": "net", "event": "netif_rx", "device": "eth2", "count": 10.0}
    events = [row | dict.fromkeys(("seconds", "least_s", "mean_s", "most_s"))]
    values = found(Few(WORK + sums, events=events))
    assert "netif_rx_events_per_request@machine" not in values and values["net netif_rx eth2 count@machine"][1] == 0.01


def test_rates_and_shares_of_time_are_divided_by_the_work_in_a_second_where_their_counts_are_not_there() -> None:
    rates = [("interrupt_rate", "machine", "1/s", 800.0), ("cpu_busy_share", "machine", "1", 0.5)]
    values = found(Few(WORK + rates))
    assert values["interrupt_rate@machine"] == (Measure.PER_WORK, 2.0)
    assert values["cpu_busy_share@machine"] == (Measure.PER_WORK, 0.5 / 400)
    counted = [("interrupts", "machine", "1", 2000.0), ("interrupts_per_request", "machine", "1/request", 2.0)]
    assert "interrupt_rate@machine" not in found(Few(WORK + rates + counted))


def test_interrupts_by_line_and_events_by_device_are_there_by_the_work_done() -> None:
    hosts = [("rtt", host, "s", 0.1) for host in ("client1", "client2")]
    net = {"run": "r", "host": "machine", "source": "net", "seconds": None, "least_s": None, "mean_s": None, "most_s": None}
    events = [
        {**net, "event": "net_dev_queue", "device": "p.client1", "count": 1000.0},
        {**net, "event": "net_dev_queue", "device": "p.client2", "count": 3000.0},
        {**net, "event": "net_dev_queue", "device": "eth2", "count": 500.0},
        {**net, "event": "netif_rx", "device": None, "count": None},
        {**net, "source": "kvm", "event": "mmio", "device": None, "count": 100.0}
        | {"seconds": 0.5, "least_s": 0.001, "mean_s": 0.005, "most_s": 0.2},
    ]
    interrupts = [{"run": "r", "host": "machine", "line": "PCI-MSI 1-edge eth0-rx", "count": 250.0}]
    values = found(Few(WORK + hosts, events=events, interrupts=interrupts))
    per_work = Measure.PER_WORK
    assert values["interrupts PCI-MSI 1-edge eth0-rx@machine"] == (per_work, 0.25)
    assert values["net net_dev_queue p.client count@machine"] == (per_work, 4.0)
    assert values["net net_dev_queue eth2 count@machine"] == (per_work, 0.5)
    assert values["net netif_rx count@machine"] == (per_work, None)
    assert values["kvm mmio count@machine"] == (per_work, 0.1)
    assert values["kvm mmio seconds@machine"] == (per_work, 0.0005)
    assert [values[f"kvm mmio {name}@machine"] for name in ("least", "mean", "most")] == [
        (Measure.LEVEL, 0.001),
        (Measure.LEVEL, 0.005),
        (Measure.LEVEL, 0.2),
    ]
