"""The layout of ladders: times are those of packets, one axis for all, nothing drawn twice or not at all."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.unit.analyses.anatomy.made_requests import FIRST_NS, at_links, long, packet, request, step_rows, twelve

from twinbed.analyses.anatomy.ladder import HEIGHT, LINE, MOST_ROWS, TICK, Rung, axis, label, rungs, tick_text, time_text
from twinbed.analyses.anatomy.ladder_section import packet_table
from twinbed.analyses.anatomy.ladders import Ladder
from twinbed.analyses.anatomy.sampled import Request, joined
from twinbed.analyses.anatomy.steps import Seen
from twinbed.render.sections import tabular


def laid_out(*requests: Request) -> list[tuple[Request, tuple[Rung, ...]]]:
    return [(each, rungs(each)) for each in requests]


def test_each_packet_is_on_one_rung_in_order() -> None:
    packets, stations = long()
    for made in (request(), request(packets, stations_us=stations)):
        found = [each for rung in rungs(made) for each in rung.packets]
        assert found == list(made.packets)


def test_of_many_packets_runs_are_folded_but_for_what_begins_or_ends_a_step() -> None:
    packets, stations = long(880)
    made = request(packets, stations_us=stations)
    assert len(made.packets) == 977
    found = rungs(made)
    assert len(found) <= MOST_ROWS
    alone = [rung.packets[0] for rung in found if not rung.is_band]
    for begin, end in ((span.begin_ns, span.end_ns) for span in made.spans):
        for ns in (begin, end):
            assert any(ns in (each.client_ns, each.server_ns) for each in alone), "a step begins and ends with a packet drawn"
    (band,) = (rung for rung in found if rung.is_band)
    assert len(band.packets) > 900
    assert len(rungs(request())) == 12, "few packets are all drawn"


def test_packets_that_arrive_as_one_are_folded_though_the_last_ends_a_step() -> None:
    packets, stations = long(400)
    client, server = at_links(packets)
    last = next(row for row in client if row["kind"] == "e")
    inner = [row for row in client if row["payload_bytes"] == 1448]
    together = {**inner[-40], "payload_bytes": 40 * 1448, "time_ns": last["time_ns"], "wire_packets": 40}
    joined_there = sorted([*(row for row in client if row not in inner[-40:]), together], key=lambda row: row["time_ns"])
    made = joined(Seen.BOTH, joined_there, server, *step_rows(stations))
    assert sum(each.arrived_ns == last["time_ns"] - FIRST_NS for each in made.packets) == 41
    assert len(rungs(made)) <= MOST_ROWS


def test_a_long_silence_in_a_run_is_not_folded_away() -> None:
    packets, stations = long(400)
    begin = next(at for at, each in enumerate(packets) if each["time_ns"] >= 2_000_000)
    for each in packets[begin:]:
        each["time_ns"] += 200_000_000
    late = {name: us + 200_000 if us >= 2000 else us for name, us in stations.items()}
    found = rungs(request(packets, stations_us=late))
    assert sum(rung.is_band for rung in found) == 2
    gaps = [(after.begin_ns - before.end_ns, before, after) for before, after in pairwise(found)]
    gap, before, after = max(gaps, key=lambda each: each[0])
    assert gap > 200_000_000
    assert not before.is_band and not after.is_band


def test_repeats_are_drawn_each_unless_there_are_too_many() -> None:
    packets, stations = long(300)
    packets[100]["kind"] = "x"
    few = rungs(request(packets, stations_us=stations))
    assert any(rung.packets[0].kind == "x" for rung in few if not rung.is_band)
    for at in range(20, 300, 4):
        packets[at]["kind"] = "x" if packets[at]["kind"] == "p" else packets[at]["kind"]
    many = rungs(request(packets, stations_us=stations))
    assert len(many) <= MOST_ROWS
    assert sum(each.kind == "x" for rung in many for each in rung.packets) > 40


def test_an_axis_with_room_for_all_is_linear_and_ends_with_the_last_packet() -> None:
    wide = [packet("S", 0), packet("s", 1000), packet("A", 2000), packet("P", 4000, 84), packet("p", 9000, 84)]
    made = request(wide, stations_us={})
    found = axis(laid_out(made))
    assert not found.is_stretched
    assert found.height == pytest.approx(HEIGHT)
    for ns in (0, 1_000_000, 4_000_000, 9_001_000):
        assert found.y(ns) == pytest.approx(HEIGHT * ns / 9_001_000)


def test_an_axis_is_stretched_where_packets_are_close_and_never_runs_backwards() -> None:
    fast, slow = request(), request([{**each, "time_ns": 40 * each["time_ns"]} for each in twelve()], stations_us={})
    found = axis(laid_out(fast, slow))
    assert found.is_stretched
    for made in (fast, slow):
        for before, after in pairwise(rungs(made)):
            assert found.y(after.begin_ns) - found.y(before.begin_ns) >= LINE - 1e-9
    every = [found.y(ns) for ns in range(0, 7_600_000, 1000)]
    assert all(before < after for before, after in pairwise(every))
    ticks = found.ticks()
    assert all(found.y(ns) == y for ns, y in ticks)
    assert all(after[1] - before[1] >= TICK for before, after in pairwise(ticks))
    assert ticks[0][0] == 0 and ticks[-1][0] > 5_000_000


def test_packets_of_one_instant_stand_level() -> None:
    together = [packet("S", 0), packet("s", 10), packet("p", 10, 100), packet("p", 10, 200, 100), packet("F", 11)]
    found = axis(laid_out(request(together, way_ns=0, stations_us={})))
    assert found.y(11_000) - found.y(10_000) >= 3 * LINE - 1e-9, "there is room for the labels of all three"


@pytest.mark.parametrize(
    ("letter", "size", "wire", "said"),
    [
        ("S", 0, 1, "SYN"),
        ("s", 0, 1, "SYN-ACK"),
        ("y", 0, 1, "SYN-ACK again"),
        ("A", 0, 1, "ACK"),
        ("P", 84, 1, "84 B"),
        ("p", 7240, 5, "7,240 B (5 packets)"),
        ("e", 500, 1, "500 B, FIN"),
        ("x", 1448, 1, "1,448 B again"),
        ("Z", 0, 1, "FIN again"),
        ("r", 0, 1, "RST"),
    ],
)
def test_labels(letter: str, size: int, wire: int, said: str) -> None:
    (found,) = request([packet("S", 0), packet(letter, 1, size, wire=wire)], stations_us={}).packets[1:]
    assert label(found) == said


def test_times_have_three_digits() -> None:
    assert [time_text(ns) for ns in (0, 648, 1040, 24_160, 999_600, 999_400, 12_000_000, 1_234_000_000)] == [
        "0",
        "648 ns",
        "1.04 µs",
        "24.2 µs",
        "1.00 ms",
        "999 µs",
        "12.0 ms",
        "1.23 s",
    ]
    assert [tick_text(ns) for ns in (0, 500, 20_000, 1_000_000)] == ["0", "500 ns", "20 µs", "1 ms"]


def rows_of(ladder: Ladder, step: str) -> tuple[tuple[str | None, ...], ...]:
    return tabular(packet_table(ladder, rungs(ladder.request), step)).rows


def test_a_steps_packets_are_those_sent_or_received_in_it() -> None:
    made = request()
    ladder = Ladder({}, "real", made, 1, 1, "run")
    rows = {step: [row[0] for row in rows_of(ladder, step)] for step in made.durations_ns}
    assert rows["syn"] == ["SYN"]
    assert rows["accept"] == ["SYN", "SYN-ACK"]
    assert rows["server"] == ["84 B", "ACK", "248 B"]
    assert rows["transfer"] == ["248 B", "ACK", "500 B"]
    (row,) = (row for row in rows_of(ladder, "server") if row[0] == "ACK")
    assert row == ("ACK", "server", "50.0 µs", "1.00 µs")
