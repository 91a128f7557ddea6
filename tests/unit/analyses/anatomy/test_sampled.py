"""A request joined of both links' packets: each is one, with both its times."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.analyses.anatomy.made_requests import EXCHANGE, FIRST_NS, WAY_NS, at_links, packet, request, step_rows, twelve

from twinbed.analyses.anatomy.sampled import joined, samples
from twinbed.analyses.anatomy.steps import Seen


def test_each_packet_is_one_with_the_times_of_both_links() -> None:
    found = request()
    assert [each.kind for each in found.packets] == [each["kind"] for each in twelve()]
    assert [each.sent_ns for each in found.packets] == [each["time_ns"] for each in twelve()]
    assert {each.arrived_ns - each.sent_ns for each in found.packets if each.arrived_ns is not None} == {WAY_NS}
    assert all(each.was_seen_sent and each.arrived_ns is not None for each in found.packets)


def test_steps_follow_one_another_and_add_up() -> None:
    found = request()
    spans = {span.step: (span.begin_ns, span.end_ns) for span in found.spans}
    assert spans["syn"] == (0, 1000) and spans["accept"] == (1000, 10_000) and spans["syn_back"] == (10_000, 11_000)
    assert spans["ask"] == (11_000, 40_000) and spans["server"] == (41_000, 100_000) and spans["finish"] == (121_000, 170_000)
    assert found.total_ns == 170_000 == sum(found.durations_ns.values())
    ordered = sorted(spans.values())
    assert all(before[1] == after[0] for before, after in pairwise(ordered))


def test_a_packet_that_does_not_arrive_is_lost_and_the_repeat_is_what_came() -> None:
    packets = twelve()
    packets[7:8] = [packet("p", 120, 500, 248, 84), packet("x", 125, 500, 248, 84)]
    found = request(packets, lost=[7])
    first, again = (each for each in found.packets if each.payload_bytes == 500)
    assert (first.sent_ns, first.arrived_ns) == (120_000, None)
    assert (again.kind, again.sent_ns, again.arrived_ns) == ("x", 125_000, 126_000)
    assert len(found.packets) == 13


def test_a_packet_that_the_senders_link_did_not_see_is_there_all_the_same() -> None:
    client, server = at_links(twelve())
    missing = [row for row in client if row["kind"] != "F"]
    found = joined(Seen.BOTH, missing, server, *step_rows())
    (fin,) = (each for each in found.packets if each.kind == "F")
    assert not fin.was_seen_sent
    assert (fin.client_ns, fin.server_ns, fin.sent_ns) == (None, 171_000, 171_000)


def test_where_segmentation_differs_a_packet_arrives_with_the_last_piece() -> None:
    client, server = at_links(twelve())

    def split(row: dict[str, Any]) -> list[dict[str, Any]]:
        if row["payload_bytes"] != 500:
            return [row]
        second = {**row, "position": 448, "payload_bytes": 300, "time_ns": row["time_ns"] + 700}
        return [{**row, "payload_bytes": 200}, second]

    found = joined(Seen.BOTH, [piece for row in client for piece in split(row)], server, *step_rows())
    (large,) = (each for each in found.packets if each.payload_bytes == 500)
    assert large.arrived_ns == 121_700
    assert len(found.packets) == 12


def test_two_clocks_are_set_so_that_the_fastest_packet_takes_as_long_there_as_back() -> None:
    found = request(seen=Seen.APART, ahead_ns=-123_456_789)
    assert {each.arrived_ns - each.sent_ns for each in found.packets if each.arrived_ns is not None} == {WAY_NS}
    assert found.durations_ns["handshake"] == found.durations_ns["path"] == 2 * WAY_NS
    assert found.total_ns == request().total_ns
    ways = [(span.begin_ns, span.end_ns) for span in found.spans if span.step == "path"]
    assert ways == [(40_000, 41_000), (100_000, 101_000)]


def test_of_one_capture_packets_have_its_times_alone() -> None:
    found = request(seen=Seen.CLIENT)
    assert len(found.packets) == 12
    assert [each.sent_ns for each in found.packets][:3] == [0, 11_000, 20_000]
    assert found.total_ns == 170_000
    assert [span.step for span in found.spans] == ["handshake", "ask", "answer", "transfer", "finish"]


def test_requests_are_told_apart_in_the_table_of_packets() -> None:
    client, server = at_links(twelve())
    rows = []
    for run, link, of_one in (("r1", "client", client), ("r1", "server", server), ("r2", "client", client[:3])):
        for sequence in (7, 9):
            named = {**EXCHANGE, "request_sequence": sequence, "run": run, "link": link}
            rows += [{**named, "number": number, **row} for number, row in enumerate(of_one)]
    rows[-1]["time_ns"] = None
    found = samples(pa.Table.from_pylist(rows))
    assert {place: len(exchanges) for place, exchanges in found.bounds.items()} == {
        ("r1", "client"): 2,
        ("r1", "server"): 2,
        ("r2", "client"): 1,
    }
    name = ("a", 1, "b", 80, 9)
    kinds, times = found.timeline(("r1", "client"), name)
    assert kinds == "SsAPapApAfFa"
    assert times[1] == pytest.approx(11e-6)
    assert found.rows(("r1", "server"), name)[0]["time_ns"] == FIRST_NS + WAY_NS
    assert samples(pa.table({})).bounds == {}
