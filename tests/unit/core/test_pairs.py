"""UDP streams and pairs of captures as tables: names, nulls and errors. What the numbers must be is tested in Rust."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinbed import _core
from twinbed.readers.packets import path

GOLDEN = Path(__file__).parents[2] / "golden"


def test_iperf3_stream_has_its_numbers_and_its_greeting_none() -> None:
    table, summary = _core.udp_streams(GOLDEN / "udp" / "tbf.pcap")
    stream, greeting = table.to_pylist()
    # iperf3's own count, and TBF's.
    assert (stream["iperf3_lost"], stream["lost_datagrams"], stream["expected_datagrams"]) == (59, 59, 188)
    assert stream["loss"] == pytest.approx(59 / 188)
    assert (stream["header"], stream["reordering_extent_max"]) == ("iperf3", None)
    assert (greeting["unread"], greeting["lost_datagrams"], greeting["jitter_s"]) == ("greeting_only", None, None)
    assert summary["unread"] == {"greeting_only": 1}
    assert summary["stopped"] is None


def test_headers_not_asked_for_are_null() -> None:
    table, _ = _core.udp_streams(GOLDEN / "udp" / "tbf.pcap", headers="none")
    assert table["lost_datagrams"].null_count == table.num_rows
    with pytest.raises(ValueError, match='headers is "quic", expected auto'):
        _core.udp_streams(GOLDEN / "udp" / "tbf.pcap", headers="quic")  # type: ignore[arg-type]


def test_split_super_packets_match() -> None:
    folder = GOLDEN / "pairs" / "router-tso"
    table, summary = _core.match_captures(folder / "a.pcap", folder / "b.pcap")
    row = max(table.to_pylist(), key=lambda row: row["sent_payload_bytes"])
    assert (row["split_packets"], row["split_parts"], row["lost_packets"]) == (16, 361, 0)
    assert (row["passes"], row["passes_by"]) == ("sender_to_receiver_side", "connection")
    assert summary["nothing_matched"] is None
    assert summary["notes"] == {}


def test_reordering_is_a_density_of_displacements() -> None:
    """The relay held two datagrams back (`relay.jsonl`); tshark has one behind one other in b.pcap, one behind three."""
    folder = GOLDEN / "pairs" / "relay-udp"
    tables = path.match(folder / "a.pcap", folder / "b.pcap")
    there = [row for row in tables["reorder_density"].to_pylist() if row["direction"] == "client_to_server"]
    packets = {row["displacement"]: row["packets"] for row in there}
    assert {by: count for by, count in packets.items() if by > 0} == {1: 1, 3: 1}
    assert sum(by * count for by, count in packets.items()) == 0, "as far late as others are early"
    assert sum(row["share"] for row in there) == pytest.approx(1)
    values = {each.metric: each.value for each in path.density_values([tables], "") if each.direction == "client_to_server"}
    assert values["path_late_displacement"] == 2
    (late,) = [
        each for each in path.density_values([tables], "") if each.metric == "path_late_displacement" and each.value is None
    ]
    assert late.direction == "server_to_client", "nothing is late there: missing, not 0"


def test_other_traffic_matches_nothing_and_says_so() -> None:
    table, summary = _core.match_captures(GOLDEN / "udp" / "tbf.pcap", GOLDEN / "pairs" / "relay-tcp" / "b.pcap")
    assert summary["matches"] == 0
    assert "NAT" in (summary["nothing_matched"] or "")
    assert table["raw_delay_min_s"].null_count == table.num_rows


def test_the_capture_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but long enough for a header")
    with pytest.raises(_core.ArtifactError, match=r"notes\.txt"):
        _core.match_captures(GOLDEN / "udp" / "tbf.pcap", text)
