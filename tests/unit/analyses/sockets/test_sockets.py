"""The analysis ``sockets``: reasons as means over runs, and windows over time, of made samples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from benchmarks.simulated.little import InMemory, record
from tests.commanded import printed

from twinbed.analyses.sockets.method import analysis as sockets
from twinbed.analyses.sockets.words import sentence
from twinbed.model.caution import Kind
from twinbed.model.error import TwinbedError
from twinbed.model.tables import Outline
from twinbed.render.pages import in_report

NAMES = ("application_limited_share", "rwnd_limited_share", "sndbuf_limited_share", "network_limited_share")
REAL = dict(zip(NAMES, (0.5, 0.0, 0.2, 0.8), strict=True))
VIRTUAL = dict(zip(NAMES, (0.1, 0.6, 0.0, 0.4), strict=True))


def samples(run: str, host: str, socket: int, cwnd: Sequence[int], acked: int) -> list[dict[str, Any]]:
    """One a second."""
    return [
        {"run": run, "host": host, "socket": socket, "time_s": 100.0 + at, "cwnd": each, "bytes_acked": acked}
        for at, each in enumerate(cwnd)
    ]


def study(shares: Mapping[str, Mapping[str, float]] | None = None, runs: int = 3, seen: float = 1.0) -> InMemory:
    """Servers send a thousand times as much as clients, on the second of two connections; windows grow from run to run."""
    shares = shares or {"real": REAL, "virtual": VIRTUAL}
    records, rows, values = [], [], []
    for replicate in range(runs):
        for testbed, of in shares.items():
            one = record(testbed, replicate, len(records), {"testbed": testbed})
            records.append(one)
            rows += samples(one.id, "client", 0, [10, 10], 1_000)
            rows += samples(one.id, "server", 0, [5, 5], 10)
            rows += samples(one.id, "server", 1, [10, 20, 30 + 10 * replicate], 1_000_000)
            known = {**of, "cwnd_mean": 20.0 + replicate, "srtt_mean": 0.001, "connections_sampled_share": seen}
            for metric, value in known.items():
                values.append({"run": one.id, "host": "server", "metric": metric, "value": value})
                values.append({"run": one.id, "host": "client", "metric": metric, "value": 0.123})
    tables = {"sockets": pa.Table.from_pylist(rows), "metrics": pa.Table.from_pylist(values)}
    return InMemory(tables, Outline("s", tuple(shares), next(iter(shares))), records)


def test_reasons_are_means_over_runs_of_the_side_that_sends() -> None:
    real, virtual = sockets.run(study()).limits
    assert (real.testbed, real.side, real.runs) == ("real", "server", 3)
    assert (real.application, real.rwnd, real.sndbuf, real.network) == pytest.approx((0.5, 0.0, 0.2, 0.8))
    assert (real.cwnd, real.srtt_s) == pytest.approx((21.0, 0.001))
    assert real.parts() == pytest.approx({"application": 0.5, "receive window": 0.0, "send buffer": 0.1, "network": 0.4})
    assert sum(virtual.parts().values()) == pytest.approx(1)


def test_sides_that_both_send_both_have_a_row() -> None:
    tables = study(runs=1)
    rows = [row | {"bytes_acked": 500} for row in tables.table("sockets").to_pylist()]
    found = sockets.run(replace(tables, tables={**tables.tables, "sockets": pa.Table.from_pylist(rows)}))
    assert [(each.testbed, each.side) for each in found.limits] == [
        ("real", "client"),
        ("real", "server"),
        ("virtual", "client"),
        ("virtual", "server"),
    ]


def test_what_is_not_known_has_no_share() -> None:
    only_idle = {"application_limited_share": 0.9}
    without_idle = {name: value for name, value in REAL.items() if not name.startswith("application")}
    old, short = sockets.run(study({"old": only_idle, "short": without_idle})).limits
    assert (old.rwnd, old.parts()) == (None, {})
    assert (short.application, short.parts()) == (
        None,
        pytest.approx({"receive window": 0.0, "send buffer": 0.2, "network": 0.8}),
    )


def test_a_window_is_that_of_the_connection_with_the_most_bytes_and_one_run_is_in_the_middle() -> None:
    windows = [each for each in sockets.run(study()).windows if each.testbed == "real"]
    assert [(each.run, each.host, each.cwnd) for each in windows] == [
        (f"real{replicate}", "server", (10, 20, 30 + 10 * replicate)) for replicate in range(3)
    ]
    assert [each.seconds for each in windows] == [(0.0, 1.0, 2.0)] * 3
    assert [each.run for each in windows if each.median] == ["real1"]


def test_windows_of_the_same_instant_are_in_one_order_whichever_thread_finds_them_first() -> None:
    """Every run has a part of the table, as runs that were read one by one have."""
    tables = study({"real": REAL}, runs=40)
    whole = tables.table("sockets")
    parts = pa.concat_tables([whole.filter(pc.equal(whole["run"], each.id)) for each in tables.records])
    orders = [
        [each.run for each in sockets.run(replace(tables, tables={**tables.tables, "sockets": parts})).windows]
        for _ in range(5)
    ]
    assert len(orders[0]) == 40 and orders == [orders[0]] * 5


def test_long_series_are_thinned_to_windows_that_there_were() -> None:
    tables = study({"real": REAL}, runs=1)
    cwnd = [10 + at % 7 for at in range(5000)]
    rows = samples("real0", "server", 1, cwnd, 10**9)
    found = sockets.run(replace(tables, tables={**tables.tables, "sockets": pa.Table.from_pylist(rows)}))
    (window,) = found.windows
    assert 100 < len(window.cwnd) <= 160
    assert all(cwnd[round(at)] == each for at, each in zip(window.seconds, window.cwnd, strict=True))
    assert window.seconds[-1] == 4999.0


def test_connections_that_nobody_saw_are_a_caution() -> None:
    (caution,) = sockets.run(study({"real": REAL}, seen=0.25)).cautions
    assert (caution.kind, caution.subject) == (Kind.UNSAMPLED, "real")
    assert "25 % of connections" in caution.detail


def test_without_samples_there_is_nothing_to_say() -> None:
    tables = replace(study(), tables={})
    with pytest.raises(TwinbedError, match="no samples of sockets"):
        sockets.run(tables)
    assert sockets.sections(tables) == ()


def test_runs_without_samples_are_left_out_and_counted() -> None:
    tables = study()
    kept = [row for row in tables.table("sockets").to_pylist() if row["run"] != "virtual2"]
    result = sockets.run(replace(tables, tables={**tables.tables, "sockets": pa.Table.from_pylist(kept)}))
    assert [each.runs for each in result.limits] == [3, 2]
    assert list(result.left_out.values()) == [1]


def test_the_main_reason_is_said_and_where_it_differs_most_from_the_reference() -> None:
    """The receive window takes none of the time on the one, and 0.6 of the 0.9 that are busy on the other."""
    assert sentence(sockets.run(study())) == (
        "Senders wait most for the application (real 50 % of the time) and the receive window (virtual 54 % of the time). "
        "The largest difference: the receive window takes 54 % of the time on virtual, and 0 % on real."
    )


def test_testbeds_that_are_alike_have_no_difference() -> None:
    alike = study({"real": REAL, "virtual": {**REAL, "sndbuf_limited_share": 0.1, "network_limited_share": 0.9}})
    assert sentence(sockets.run(alike)) == ("Senders wait most for the application (real 50 %, virtual 50 % of the time).")


def test_the_command_prints_every_form(tmp_path: Path) -> None:
    assert "the receive window (virtual 54 % of the time)" in printed(sockets, study())
    limits = json.loads(printed(sockets, study(), "--format", "json"))["limits"]
    assert [row["rwnd"] for row in limits] == pytest.approx([0.0, 0.6])
    assert printed(sockets, study(), "--format", "csv", "--table", "windows").count("\n") == 2 * 3 * 3 + 1
    printed(sockets, study(), "-o", str(tmp_path / "sockets.html"))
    drawn = (tmp_path / "sockets.html").read_text()
    assert drawn.count("<svg ") == 2 and "virtual: receive window 54 %" in drawn


def test_a_report_has_the_section() -> None:
    (section,) = sockets.sections(study())
    text = str(in_report(section))
    assert 'id="sockets"' in text and text.count("<svg ") == 2
