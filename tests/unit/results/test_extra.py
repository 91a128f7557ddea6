"""Extra connections: a planted one of each class is found and classed, in a capture made here and read by the core itself."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from twinbed.instruments.monitor import MonitorParams, monitor
from twinbed.metrics.metric import Value
from twinbed.model.services import Service
from twinbed.readers.monitor.classes import CLASSES
from twinbed.readers.replay import pcap
from twinbed.results.extract.extra import extra

HTTP = [Service("tcp", 80)]
CLIENT, SERVER, GROUP = bytes((10, 77, 0, 1)), bytes((10, 77, 0, 2)), bytes((224, 0, 0, 251))
MACS = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01"
SYN, ACK, RST, FIN = 2, 16, 4, 1


def summed(data: bytes) -> int:
    """RFC 1071, word by word."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data if len(data) % 2 == 0 else data + b"\0"))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def ip(protocol: int, source: bytes, destination: bytes, payload: bytes) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0) + source + destination
    head = head[:10] + struct.pack("!H", summed(head)) + head[12:]
    return MACS + b"\x08\0" + head + payload


def udp(port: int, to: int, destination: bytes = SERVER) -> bytes:
    return ip(17, CLIENT, destination, struct.pack("!HHHH", port, to, 12, 0) + b"data")


def tcp(
    source: bytes, destination: bytes, ports: tuple[int, int], numbers: tuple[int, int], flags: int, *, wrong: int = 0
) -> bytes:
    body = struct.pack("!HHIIBBHHH", *ports, *numbers, 5 << 4, flags, 1000, 0, 0)
    right = summed(source + destination + struct.pack("!HH", 6, len(body)) + body)
    return ip(6, source, destination, body[:16] + struct.pack("!H", right ^ wrong) + body[18:])


def connection(port: int, to: int, *, wrong: int = 0) -> list[bytes]:
    """Opened and closed as it should be."""
    there, back = (port, to), (to, port)
    return [
        tcp(CLIENT, SERVER, there, (100, 0), SYN, wrong=wrong),
        tcp(SERVER, CLIENT, back, (500, 101), SYN | ACK, wrong=wrong),
        tcp(CLIENT, SERVER, there, (101, 501), ACK, wrong=wrong),
        tcp(CLIENT, SERVER, there, (101, 501), FIN | ACK, wrong=wrong),
        tcp(SERVER, CLIENT, back, (501, 102), FIN | ACK, wrong=wrong),
        tcp(CLIENT, SERVER, there, (102, 502), ACK, wrong=wrong),
    ]


def refused(port: int, to: int) -> list[bytes]:
    return [tcp(CLIENT, SERVER, (port, to), (1, 0), SYN), tcp(SERVER, CLIENT, (to, port), (0, 2), RST | ACK)]


def icmp(kind: int) -> bytes:
    body = struct.pack("!BBHHH", kind, 0, 0, 7, 1)
    return ip(1, CLIENT, SERVER, body[:2] + struct.pack("!H", summed(body)) + body[4:])


def solicitation() -> bytes:
    source, destination = b"\xfe\x80" + bytes(13) + b"\1", b"\xff\x02" + bytes(13) + b"\1"
    body = struct.pack("!BBHI", 135, 0, 0, 0) + destination
    pseudo = source + destination + struct.pack("!II", len(body), 58)
    body = body[:2] + struct.pack("!H", summed(pseudo + body)) + body[4:]
    return MACS + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(body), 58, 255) + source + destination + body


ARP = MACS + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + MACS[6:] + CLIENT + bytes(6) + SERVER
PLANTED: dict[str, list[bytes]] = {
    "ARP/ND": [solicitation(), ARP],
    "DHCP": [udp(68, 67, b"\xff" * 4)],
    "mDNS": [udp(5353, 5353, GROUP)],
    "NTP": [udp(40001, 123)],
    "management": connection(40002, 22),
    "instrument": [udp(40003, 2112)],
    "workload retry": [tcp(CLIENT, SERVER, (40004, 80), (1, 0), SYN)],
    "probe": [*refused(40005, 8080), icmp(8)],
    "ICMP error": [icmp(3)],
    "unknown": [udp(40006, 9999)],
}
TWO = {"probe"}
"""Classes of which two connections are planted."""


def captured(folder: Path, frames: list[bytes], host: str = "client") -> Path:
    """An artifacts folder with one link's capture, a frame a second."""
    (folder / "machine").mkdir(exist_ok=True)
    content = pcap.write([(10**18 + number * 10**9, data) for number, data in enumerate(frames)])
    (folder / "machine" / f"monitor-{host}.cap").write_bytes(content)
    return folder


def read(
    folder: Path, services: list[Service]
) -> tuple[dict[tuple[str, str], float | None], dict[str, list[dict[str, object]]]]:
    found = monitor.extract(MonitorParams(), folder)
    values, tables = extra(list(found.tables.items()), services)
    every: list[Value] = [*found.values, *(value for value, _ in values)]
    return {(each.metric, each.host): each.value for each in every}, {name: table.to_pylist() for name, table in tables}


def test_every_class_has_a_planted_connection():
    assert set(PLANTED) == set(CLASSES)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_connection_is_found_and_classed(name: str, tmp_path: Path) -> None:
    values, tables = read(captured(tmp_path, [*connection(50000, 80), *PLANTED[name]]), HTTP)
    rows = [row for row in tables["extra_connections"] if row["checksums"] == "ignored"]
    assert [row["class"] for row in rows] == [name] * (2 if name in TWO else 1)
    assert values["extra_connections", ""] == len(rows)


def test_all_of_them_together(tmp_path: Path) -> None:
    frames = [*connection(50000, 80), *(frame for planted in PLANTED.values() for frame in planted)]
    values, tables = read(captured(tmp_path, frames), HTTP)
    classes = {row["class"]: row for row in tables["extra_classes"] if row["checksums"] == "ignored"}
    assert {name: row["connections"] for name, row in classes.items()} == {name: 1 + (name in TWO) for name in CLASSES}
    assert classes["ARP/ND"]["frames"] == 1, "ARP has no connections"
    assert values["monitored_connections", ""] == 1 + len(CLASSES) + len(TWO)
    seconds = len(frames) - 1
    assert values["extra_connections_per_second", ""] == (len(CLASSES) + len(TWO)) / seconds
    row = classes["NTP"]
    assert row["rate"] == 1 / seconds
    # R 4.2: poisson.test(1)$conf.int gives 0.02531781 and 5.571643.
    assert row["low"] == pytest.approx(0.02531781 / seconds, rel=1e-6)
    assert row["high"] == pytest.approx(5.571643 / seconds, rel=1e-6)


def test_what_a_class_has_none_of_is_bounded_all_the_same(tmp_path: Path) -> None:
    _, tables = read(captured(tmp_path, connection(50000, 80)), HTTP)
    row = next(row for row in tables["extra_classes"] if row["class"] == "NTP")
    # R 4.2: poisson.test(0)$conf.int gives 0 and 3.688879.
    assert (row["connections"], row["rate"], row["low"]) == (0, 0, 0)
    assert row["high"] == pytest.approx(3.688879 / 5, rel=1e-6)


def test_without_the_workloads_services_nothing_is_called_extra(tmp_path: Path) -> None:
    values, tables = read(captured(tmp_path, connection(50000, 80)), [])
    assert values["extra_connections", ""] is None
    assert "extra_connections" not in tables


def test_of_a_capture_with_one_packet_there_is_no_rate(tmp_path: Path) -> None:
    values, tables = read(captured(tmp_path, [udp(1, 123)]), HTTP)
    assert values["extra_connections", ""] == 1
    assert values["extra_connections_per_second", ""] is None
    assert {row["rate"] for row in tables["extra_classes"]} == {None}


def test_wrong_checksums_hide_connections_from_a_strict_monitor(tmp_path: Path) -> None:
    frames = [*connection(50000, 80), *connection(50001, 80, wrong=0x1234)]
    values, _ = read(captured(tmp_path, frames), HTTP)
    assert values["connections_lost_to_checksums", ""] == 1
    assert values["invalid_checksum_share", ""] == values["broken_checksum_share", ""] == 0.5
    assert values["unverifiable_checksum_share", ""] == 0


def test_unfinished_checksums_are_invalid_and_not_broken(tmp_path: Path) -> None:
    """tests/golden/checksums: between two namespaces with a device's own checksum offload; all TCP's are unfinished there, the
    others by tshark's count."""
    golden = Path(__file__).parents[2] / "golden" / "checksums"
    verdicts = {}
    for line in (golden / "expected.tsv").read_text().splitlines():
        file, protocol, letters = line.split("\t")
        if file == "checksums/veth-offload-on.pcap" and protocol != "ip":
            verdicts[protocol] = letters
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "monitor-client.cap").write_bytes((golden / "veth-offload-on.pcap").read_bytes())
    values, _ = read(tmp_path, HTTP)
    bad = sum(letters.count("b") for letters in verdicts.values())
    good = sum(letters.count("g") for letters in verdicts.values())
    assert bad > 0
    assert values["invalid_checksum_share", ""] == pytest.approx(bad / (bad + good))
    assert values["broken_checksum_share", ""] == 0


def test_a_cut_packet_cannot_be_verified(tmp_path: Path) -> None:
    (tmp_path / "machine").mkdir()
    whole = tcp(CLIENT, SERVER, (1, 80), (1, 0), SYN)
    long = ip(6, CLIENT, SERVER, whole[34:] + bytes(1000))
    content = bytearray(pcap.write([(10**18, long[:96])]))
    content[36:40] = struct.pack("<I", len(long))
    (tmp_path / "machine" / "monitor-client.cap").write_bytes(bytes(content))
    values, _ = read(tmp_path, HTTP)
    assert values["unverifiable_checksum_share", ""] == 1
    assert values["invalid_checksum_share", ""] is None
