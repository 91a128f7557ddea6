"""Stalls of connections: both links' views joined, where it got stuck, requests under way, and kernels' messages beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from benchmarks.simulated.little import InMemory, record

from twinbed.analyses.stalls.method import analysis as stalls
from twinbed.analyses.stalls.words import sentence
from twinbed.model.tables import Outline
from twinbed.render.sections import body, lines
from twinbed.results.extract.kernel import kernel_messages

BEGUN = 1_700_000_000_000_000_000
S = 1_000_000_000


def row(link: str, **more: Any) -> dict[str, Any]:
    ends = {"originator_address": "10.0.0.1", "originator_port": 4000, "responder_address": "10.0.0.2", "responder_port": 80}
    figures = {"duration_s": 13.0, "direction": "originator", "unacknowledged_bytes": 100, "retransmissions": 5, "probes": 0}
    rest = {"returned_packets": 0, "rto_s": 0.2, "reason": "unanswered", "ended_by": "acknowledgment"}
    return {"run": "a0", "link": link, **ends, "first_packet": 1, "start_ns": BEGUN + 7 * S, **figures, **rest, **more}


def results(rows: list[dict[str, Any]], **tables: pa.Table) -> InMemory:
    return InMemory({"stalls": pa.Table.from_pylist(rows), **tables}, Outline("s", ("a",), "a"), [record("a", 0, 0, {})])


@pytest.mark.parametrize(
    ("client", "server", "place"),
    [
        ({"retransmissions": 0}, {}, "sender"),
        ({}, {"retransmissions": 0}, "path"),
        ({}, {"returned_packets": 5}, "path_back"),
        ({}, {}, "receiver"),
        ({"reason": "zero_window", "retransmissions": 0}, {}, "receiver"),
    ],
)
def test_both_links_say_where_it_got_stuck(client: dict[str, Any], server: dict[str, Any], place: str) -> None:
    [one] = stalls.run(results([row("client", **client), row("server", start_ns=BEGUN + 7 * S + 900, **server)])).stalls
    assert (one.links, one.place, one.waiting, one.start_ns) == (("client", "server"), place, "client", BEGUN + 7 * S)


def test_what_one_link_saw_has_no_place_and_what_follows_is_another() -> None:
    later = row("client", start_ns=BEGUN + 30 * S)
    assert [each.place for each in stalls.run(results([row("client"), later])).stalls] == [None, None]
    # The same ports at another time on the other link are another stall.
    assert [each.links for each in stalls.run(results([row("client"), row("server", start_ns=later["start_ns"])])).stalls] == [
        ("client",),
        ("server",),
    ]


def test_requests_and_kernels_of_that_time(tmp_path: Path) -> None:
    """Requests: one before it, one that it holds up, one in it, one without an end, one on another link. Messages by the
    clocks' difference: the kernel's 100 s are 7 s after the beginning."""
    starts = [BEGUN, BEGUN + 6 * S, BEGUN + 10 * S, BEGUN + 19 * S, BEGUN + 8 * S]
    links = ["client"] * 4 + ["server"]
    exchanges = pa.table({"run": ["a0"] * 5, "link": links, "start_ns": starts, "duration_s": [1.0, 15.0, 0.1, None, 1.0]})
    connections = pa.table({"run": ["a0"], "link": ["client"], "start_ns": [BEGUN]})
    host = tmp_path / "artifacts" / "client"
    host.mkdir(parents=True)
    (host / "kernel.log").write_text(
        "[   98.500000] too early\n[   99.500000] e1000: eth0 NIC Link is Down\nno stamp\n"
        "[  105.250000] NETDEV WATCHDOG: eth0: transmit queue 0 timed out\n[  115.000000] too late\n"
    )
    assert kernel_messages(tmp_path / "artifacts", ["artifacts/client/kernel.log"]) is None, "by which clock is not known"
    (host / "kernel.clock.json").write_text(json.dumps({"ahead_s": BEGUN / S + 7 - 100, "uncertain_s": 0.001}))
    said = kernel_messages(tmp_path / "artifacts", ["artifacts/client/kernel.log", "artifacts/client/ab.txt"])
    assert said is not None and said.num_rows == 4
    said = said.add_column(0, "run", pa.array(["a0"] * 4))
    found = stalls.run(results([row("client")], exchanges=exchanges, connections=connections, kernel_messages=said))
    [one] = found.stalls
    assert (one.requests, one.since_s) == (3, 7.0)
    assert [(each.host, round(each.after_s, 2)) for each in one.messages] == [("client", -0.5), ("client", 5.25)]
    shown = list(lines(stalls.section(found)))
    assert shown[-1] == (
        "a, stall at 7.000 s: client's kernel, 5.25 s after the start: NETDEV WATCHDOG: eth0: transmit queue 0 timed out"
    )
    assert sentence(found) == "Connections stalled 1 time in 1 run, for up to 13 s (on a)."
    assert "client" in shown[2]
    [section] = stalls.sections(results([row("client")]))
    assert "13.000" in body(section)
    assert {name: len(rows) for name, rows in stalls.tables(found).items()} == {"stalls": 1, "messages": 2}


def test_no_stalls_are_no_section() -> None:
    nothing = InMemory({}, Outline("s", ("a",), "a"), [record("a", 0, 0, {})])
    assert stalls.run(nothing).stalls == () and not stalls.sections(nothing)
    assert sentence(stalls.run(nothing)).startswith("Cannot tell whether connections stalled")
