"""A capture's packets one by one: frames written by hand, whose lengths follow from the headers' specifications."""

from __future__ import annotations

import struct

import pytest

from twinbed import _core

IPV4, IPV6, ARP = b"\x08\x00", b"\x86\xdd", b"\x08\x06"


def ethernet(kind: bytes, payload: bytes, tag: bytes = b"") -> bytes:
    return bytes(12) + tag + kind + payload


def ipv4(protocol: int, payload: bytes, options: bytes = b"") -> bytes:
    words = 5 + len(options) // 4
    length = struct.pack(">H", words * 4 + len(payload))
    return bytes([0x40 | words, 0]) + length + bytes(5) + bytes([protocol]) + bytes(10) + options + payload


def ipv6(protocol: int, payload: bytes) -> bytes:
    return bytes([0x60, 0, 0, 0]) + struct.pack(">H", len(payload)) + bytes([protocol, 64]) + bytes(32) + payload


def tcp(words: int, payload: bytes = b"") -> bytes:
    return bytes(12) + bytes([words << 4, 0x10]) + bytes(6) + bytes(words * 4 - 20) + payload


def capture(*frames: tuple[int, bytes, int]) -> bytes:
    """(time in ns, captured bytes, original length)"""
    text = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
    for time_ns, data, length in frames:
        text += struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(data), length) + data
    return text


@pytest.mark.parametrize(
    ("frame", "headers"),
    [
        (ethernet(IPV4, ipv4(6, tcp(8))), (14, 20, 32)),
        (ethernet(IPV4, ipv4(6, tcp(5)), tag=b"\x81\x00\x00\x01"), (18, 20, 20)),
        (ethernet(IPV4, ipv4(17, bytes(4) + b"\x00\x08" + bytes(2), options=bytes(8))), (14, 28, 8)),
        (ethernet(IPV6, ipv6(6, tcp(5))), (14, 40, 20)),
        (ethernet(IPV4, ipv4(1, bytes(8))), (None, None, None)),
        (ethernet(ARP, bytes(28)), (None, None, None)),
    ],
)
def test_headers(frame: bytes, headers: tuple[int | None, ...]) -> None:
    [row] = _core.frames(capture((5, frame, len(frame)))).to_pylist()
    names = ("link_header_bytes", "ip_header_bytes", "transport_header_bytes")
    assert tuple(row[name] for name in names) == headers
    assert (row["time_ns"], row["bytes"], row["captured_bytes"]) == (5, len(frame), len(frame))


def test_a_snap_length_changes_no_length_but_the_captured() -> None:
    frame = ethernet(IPV4, ipv4(6, tcp(8, bytes(1448))))
    [row] = _core.frames(capture((0, frame[:96], len(frame)))).to_pylist()
    assert (row["bytes"], row["captured_bytes"], row["transport_header_bytes"]) == (1514, 96, 32)


def test_a_record_that_is_cut_off_is_no_row_and_another_file_is_refused() -> None:
    frame = ethernet(ARP, bytes(28))
    whole = capture((0, frame, 42), (1, frame, 42))
    assert _core.frames(whole[:-1]).num_rows == 1
    assert _core.frames(capture()).num_rows == 0
    with pytest.raises(_core.ArtifactError, match="magic number"):
        _core.frames(b"nothing of the kind")
