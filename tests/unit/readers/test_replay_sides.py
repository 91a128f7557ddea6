"""A capture split into two sides. Known answers are tshark's, of the files that are made."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from twinbed.readers.replay import pcap, sample
from twinbed.readers.replay.sides import Sides, split

CAPTURES = Path(__file__).parents[2] / "golden" / "captures"
CLIENT, SERVER = "10.77.0.1", "10.77.0.2"
MANY = 10**6


def of(content: bytes, most: int = MANY, seconds: float = 1e6) -> Sides:
    return split(content, CLIENT, SERVER, most, seconds)


def fields(folder: Path, content: bytes, *names: str) -> list[list[str]]:
    """tshark's, of every packet."""
    file = folder / "made.pcap"
    file.write_bytes(content)
    checks = ("-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    argv = ["tshark", "-n", "-r", str(file), *checks, "-T", "fields", *(part for name in names for part in ("-e", name))]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_each_side_sends_its_own_in_order_at_its_times(tmp_path: Path) -> None:
    """zeek-get.pcap: 14 packets of one connection; tshark: 7 of 141.142.228.5, which sent the SYN, and 7 of 192.150.187.43."""
    content = (CAPTURES / "zeek-get.pcap").read_bytes()
    file = tmp_path / "in.pcap"
    file.write_bytes(content)
    theirs = fields(tmp_path, content, "ip.src", "frame.time_relative", "tcp.seq_raw", "tcp.payload")
    sides = of(content)
    for made, offsets, source, address in (
        (sides.client, sides.client_offsets_ns, "141.142.228.5", CLIENT),
        (sides.server, sides.server_offsets_ns, "192.150.187.43", SERVER),
    ):
        mark, *ours = fields(tmp_path, made, "ip.src", "frame.time_relative", "tcp.seq_raw", "tcp.payload")
        assert mark[0] == "" and mark[1] == "0.000000000"
        expected = [[address, *row[1:]] for row in theirs if row[0] == source]
        assert ours == expected
        assert [each / 1e9 for each in offsets] == pytest.approx([float(row[1]) for row in expected], abs=1e-9)


def test_checksums_are_right_to_tshark_where_they_were(tmp_path: Path) -> None:
    sides = of((CAPTURES / "zeek-get.pcap").read_bytes())
    for made in (sides.client, sides.server):
        rows = fields(tmp_path, made, "tcp.checksum.status", "ip.checksum.status")[1:]
        assert rows and all(row == ["1", "1"] for row in rows)
    assert not sides.notes


def test_a_wrong_checksum_stays_wrong(tmp_path: Path) -> None:
    sides = of((CAPTURES / "zeek-ip4-tcp-bad-chksum.pcap").read_bytes())
    rows = [row for made in (sides.client, sides.server) for row in fields(tmp_path, made, "tcp.checksum.status")[1:] if row[0]]
    before = fields(tmp_path, (CAPTURES / "zeek-ip4-tcp-bad-chksum.pcap").read_bytes(), "tcp.checksum.status")
    assert sorted(rows) == sorted(before) and ["0"] in rows


def test_what_was_left_to_a_nic_is_made_right(tmp_path: Path) -> None:
    sides = of((CAPTURES.parent / "checksums" / "veth-offload-on.pcap").read_bytes())
    rows = [
        row
        for made in (sides.client, sides.server)
        for row in fields(tmp_path, made, "tcp.checksum.status", "udp.checksum.status")
    ]
    assert {status for row in rows for status in row} == {"", "1"}
    assert sides.notes["checksums that were left to a NIC, made right"] > 0
    assert sides.left_out["not IPv4"] > 0 and sides.left_out["fragments"] > 0


def test_the_built_in_conversation_is_whole(tmp_path: Path) -> None:
    sides = of(sample.capture())
    assert (len(sides.client_offsets_ns), len(sides.server_offsets_ns), sides.notes, sides.left_out) == (15, 15, {}, {})
    both = sorted(pcap.read(sides.client)[1:] + pcap.read(sides.server)[1:], key=lambda frame: frame.time_ns)
    whole = pcap.write([(frame.time_ns, frame.data) for frame in both])
    rows = fields(tmp_path, whole, "tcp.analysis.flags", "http.response.code")
    assert {row[0] for row in rows} == {""}, "tshark finds nothing amiss"
    assert [row[1] for row in rows if row[1]] == ["200"] * 3


def test_a_capture_without_syns_is_told_by_ports_and_said():
    """Byte 47 of such a frame has TCP's flags."""
    frames = [frame for frame in pcap.read(sample.capture()) if not frame.data[47] & 2]
    sides = of(pcap.write([(frame.time_ns, frame.data) for frame in frames]))
    assert sides.notes["connections that begin without a SYN"] == 3
    assert (len(sides.client_offsets_ns), len(sides.server_offsets_ns)) == (12, 12)


def test_two_clients_with_one_port_become_two_connections(tmp_path: Path) -> None:
    first = pcap.read(sample.capture())[:10]
    other = []
    for frame in first:
        data = frame.data.replace(bytes((192, 0, 2, 1)), bytes((192, 0, 2, 9)))
        other.append((frame.time_ns + 5 * 10**9, data))
    sides = of(pcap.write([*((frame.time_ns, frame.data) for frame in first), *other]))
    assert sides.notes["connections whose client got another port"] == 1
    ports = {row[0] for row in fields(tmp_path, sides.client, "tcp.srcport")[1:]}
    assert ports == {"40000", "20000"}


def test_limits_leave_the_rest_out():
    assert of(sample.capture(), most=7).left_out == {"beyond a limit": 23}
    assert of(sample.capture(), seconds=1.0).left_out == {"beyond a limit": 20}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no pcap file"),
        (bytes.fromhex("0a0d0d0a") + bytes(40), "editcap"),
        (sample.capture()[:20], "the file ends after 20"),
        (sample.capture()[:30], "ends within a record's header"),
        (sample.capture()[:-1], "the file has"),
        (sample.capture()[:24], "has no packet"),
        (pcap.write([(0, bytes(60))]), "nothing of the capture can be replayed: 1 not IPv4"),
    ],
)
def test_what_is_no_capture_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        of(content)


def test_no_bytes_make_it_fail_otherwise():
    """Every field of the headers of one packet, at its extremes."""
    frame = pcap.read(sample.capture())[3].data
    for at in range(len(frame)):
        for value in (0, 1, 0x45, 0x4F, 0x80, 0xFF):
            data = frame[:at] + bytes((value,)) + frame[at + 1 :]
            try:
                of(pcap.write([(0, data), (1, frame[:at])]))
            except ValueError as error:
                assert "nothing of the capture" in str(error)
    with pytest.raises(ValueError, match="claims 4294967295 bytes"):
        of(pcap.write([])[:24] + struct.pack("<IIII", 0, 0, 2**32 - 1, 60))
