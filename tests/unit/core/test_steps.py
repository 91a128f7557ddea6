"""The steps of exchanges against tshark: which segment each step is, and when it was seen (tests/golden/anatomy)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from twinbed import _core

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = ("close", "curl-full", "curl-cut", "keep-bare", "offload-on-client", "small-on")
FIN, SYN, ACK = 1, 2, 16


@dataclass(frozen=True, slots=True)
class Seen:
    """A segment as tshark has it."""

    number: int
    time_ns: int
    source: int
    destination: int
    flags: int
    length: int
    sequence: int
    acks: int | None
    is_repeat: bool


def seen(name: str) -> list[Seen]:
    rows = []
    with (GOLDEN / "anatomy" / f"{name}.tsv").open() as file:
        for number, time, _, source, destination, flags, length, sequence, _, acks, repeat in csv.reader(file, delimiter="\t"):
            seconds, fraction = time.split(".")
            time_ns = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
            rows.append(
                Seen(
                    *(int(number), time_ns, int(source), int(destination), int(flags, 16), int(length), int(sequence)),
                    acks=int(acks) if acks else None,
                    is_repeat=bool(repeat),
                )
            )
    return rows


def tables(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    found, _ = _core.capture_tables(GOLDEN / "packetisation" / f"{name}.pcap", ["steps"])
    return found["steps"].to_pylist(), found["step_packets"].to_pylist()


@pytest.mark.parametrize("name", CAPTURES)
def test_each_step_is_the_segment_that_tshark_has_for_it(name: str) -> None:
    segments, (rows, _) = seen(name), tables(name)
    assert len(rows) >= 3
    acknowledged = 0
    for row, later in zip(rows, [*rows[1:], None], strict=True):
        port = row["client_port"]
        client = [each for each in segments if each.source == port]
        server = [each for each in segments if each.destination == port]
        is_last = later is None or later["client_port"] != port
        ends_ns = None if is_last or later is None else later["request_ns"]
        (request,) = [
            each for each in client if each.sequence == row["request_sequence"] and each.length and not each.is_repeat
        ]
        assert row["request_ns"] == request.time_ns
        assert row["next_ns"] == ends_ns
        of_request = [
            each
            for each in client
            if each.length and each.time_ns >= request.time_ns and (ends_ns is None or each.time_ns < ends_ns)
        ]
        assert row["request_end_ns"] == of_request[-1].time_ns
        of_response = [
            each
            for each in server
            if each.length and each.time_ns > request.time_ns and (ends_ns is None or each.time_ns < ends_ns)
        ]
        if row["complete"]:
            assert row["response_end_ns"] == of_response[-1].time_ns
        for column, of_data, others in (
            ("request_acked_ns", of_request, server),
            ("response_acked_ns", of_response, client),
        ):
            by = [each.time_ns for each in others if each.acks == of_data[-1].number]
            if by and row["complete"]:
                assert row[column] == by[0], column
                acknowledged += 1
        if row["index"] == 0 and any(each.flags & SYN for each in client):
            assert row["syn_ns"] == next(each.time_ns for each in client if each.flags & SYN)
            assert row["syn_ack_ns"] == next(each.time_ns for each in server if each.flags & SYN)
            assert row["established_ns"] == next(each.time_ns for each in client if not each.flags & SYN)
        else:
            assert row["syn_ns"] is row["syn_ack_ns"] is None
        fins = [next((each.time_ns for each in side if each.flags & FIN), None) for side in (client, server)]
        assert [row["client_fin_ns"], row["server_fin_ns"]] == (fins if is_last else [None, None])
    assert acknowledged >= len(rows)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_packets_of_exchanges_are_all_of_their_connections(name: str) -> None:
    segments, (_, packets) = seen(name), tables(name)
    ports = {packet["client_port"] for packet in packets}
    expected = [
        (each.time_ns, "client" if each.source in ports else "server", each.length)
        for each in segments
        if {each.source, each.destination} & ports
    ]
    assert sorted((packet["time_ns"], packet["from"], packet["payload_bytes"]) for packet in packets) == sorted(expected)
    repeated = sum(each.is_repeat for each in segments if {each.source, each.destination} & ports)
    assert sum(packet["kind"] in "xX" for packet in packets) == repeated


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_encrypted_requests_are_those_that_tshark_reads_with_their_keys(version: str) -> None:
    """Their first segments, and how long the first byte takes where tshark has a time for the whole answer."""
    with (GOLDEN / "anatomy" / f"tls-{version}.http.tsv").open() as file:
        read = list(csv.reader(file, delimiter="\t"))
    requests = [row for row in read if row[4]]
    found, _ = _core.capture_tables(GOLDEN / "anatomy" / f"tls-{version}.pcap", ["steps", "exchanges"])
    rows = found["steps"].to_pylist()
    # Behind the head of the record.
    assert [(row["client_port"], row["request_sequence"] - 5) for row in rows] == [
        (int(row[1]), int(row[3])) for row in requests
    ]
    assert {row["delimited"] for row in rows} == {"records"} and found["exchanges"].num_rows == 0
    assert [row["index"] for row in rows] == [0, 1, 2, 0]
    answers = {(int(each[2]), int(each[6])): float(each[5]) for each in read if not each[4]}
    for row, size in zip(rows, (500, 20_000, 1_048_576, 100), strict=True):
        assert size < row["server_payload_bytes"] < 1.01 * size + 4000
        seconds = (row["response_ns"] - row["request_ns"]) * 1e-9
        ends = (row["response_end_ns"] - row["request_ns"]) * 1e-9
        whole = answers.get((row["client_port"], size))
        if whole is not None:
            # What tshark calls the answer's packet is the one with the end of its head, which the server sends by itself.
            assert 0 < seconds <= whole + 1e-4 and whole <= ends + 1e-4, (size, seconds, whole, ends)


ZEEKS = ("206_example_a-96", "bro.org-96", "content-range-gap", "cooper-grill-dvwa", "get", "handshake-reorder", "missing-syn")
UNANSWERED = {("bro.org-96", 55127)}
"""Its head is cut off here, and the server's FIN was not captured: only the head says where the answer ends."""
SYN_AGAIN = {("206_example_a-96", 10978)}
"""tshark's initial_rtt is from the last SYN; steps are from the first, which is when the client began to wait."""


@pytest.mark.parametrize("name", [*ZEEKS, "retransmit-timeout"])
def test_answers_take_as_long_as_tshark_has_it_of_the_whole_captures(name: str) -> None:
    """From the request's last byte to the answer's: `http.time`; and the handshake, `tcp.analysis.initial_rtt`."""
    with (GOLDEN / "anatomy" / f"{name.removesuffix('-96')}.http.tsv").open() as file:
        read = [row for row in csv.reader(file, delimiter="\t") if not row[4] and int(row[5]) >= 200]
    (capture,) = (each for each in (GOLDEN / "captures").glob(f"zeek-{name}.pcap*") if each.suffix != ".tsv")
    rows = _core.capture_tables(capture, ["steps"])[0]["steps"].to_pylist()
    for port in {int(row[3]) for row in read}:
        answers = [row for row in read if int(row[3]) == port]
        own = [row for row in rows if row["client_port"] == port]
        assert len(own) >= len(answers)
        for answer, row in zip(answers, own, strict=False):
            if (name, port) in UNANSWERED:
                assert not row["complete"]
            else:
                assert (row["response_end_ns"] - row["request_end_ns"]) * 1e-9 == pytest.approx(float(answer[6]), abs=1e-9)
            if row["established_ns"] is not None and row["syn_ns"] is not None and row["index"] == 0:
                handshake_s = (row["established_ns"] - row["syn_ns"]) * 1e-9
                assert (handshake_s == pytest.approx(float(answer[7]), abs=1e-9)) != ((name, port) in SYN_AGAIN)
