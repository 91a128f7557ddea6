"""Just enough of Ethernet, IPv4, IPv6 and TCP for a relay's rules to choose packets by. Not used to judge captures."""

from __future__ import annotations

import struct
from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK, URG = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
ETHERNET_BYTES = 14


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame on its way. ``number`` counts the TCP packets of its sender from 1, ``data_number`` those with payload
    (0 without payload)."""

    sender: str
    number: int
    data_number: int
    source_port: int
    destination_port: int
    sequence: int
    acknowledgement: int
    flags: int
    payload_bytes: int
    frame: bytes

    @property
    def is_data(self) -> bool:
        return self.payload_bytes > 0

    @property
    def is_pure_ack(self) -> bool:
        return self.payload_bytes == 0 and self.flags & (SYN | FIN | RST | ACK) == ACK


def tcp_at(frame: bytes) -> tuple[int, int] | None:
    """Where the TCP header begins and the packet ends, None for what is no TCP."""
    if len(frame) < ETHERNET_BYTES + 20:
        return None
    kind = frame[12:14]
    if kind == b"\x08\x00" and frame[23] == 6:
        return ETHERNET_BYTES + (frame[14] & 15) * 4, ETHERNET_BYTES + int.from_bytes(frame[16:18], "big")
    if kind == b"\x86\xdd" and frame[20] == 6:
        return ETHERNET_BYTES + 40, len(frame)
    return None


def parsed(sender: str, number: int, data_number: int, frame: bytes) -> Frame | None:
    """``data_number`` is the number that this frame has if it carries data."""
    found = tcp_at(frame)
    if found is None:
        return None
    start, end = found
    source, destination, sequence, acknowledgement, offset, flags = struct.unpack_from("!HHIIBB", frame, start)
    payload = end - start - (offset >> 4) * 4
    counted = data_number if payload > 0 else 0
    return Frame(sender, number, counted, source, destination, sequence, acknowledgement, flags, payload, frame)


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def with_ipv4_header(frame: bytes, changes: dict[int, bytes]) -> bytes:
    """The frame with bytes of its IPv4 header (offset from its start -> bytes) changed and the header checksum made right."""
    start, length = ETHERNET_BYTES, (frame[14] & 15) * 4
    header = bytearray(frame[start : start + length])
    for offset, value in {**changes, 10: b"\0\0"}.items():
        header[offset : offset + len(value)] = value
    header[10:12] = checksum(bytes(header)).to_bytes(2, "big")
    return frame[:start] + bytes(header) + frame[start + length :]


def congestion_marked(frame: bytes) -> bytes:
    """Congestion experienced (RFC 3168), where the sender allows it."""
    service = frame[15]
    return with_ipv4_header(frame, {1: bytes([service | 3])}) if service & 3 else frame


def fragments(frame: bytes, largest: int) -> list[bytes]:
    """As a router before a link of a smaller MTU makes them (RFC 791); ``largest`` is the most payload bytes of each."""
    start = ETHERNET_BYTES + (frame[14] & 15) * 4
    if frame[12:14] != b"\x08\x00" or frame[20] & 0x40 or len(frame) - start <= largest:
        return [frame]
    step, payload, made = largest // 8 * 8, frame[start:], []
    for offset in range(0, len(payload), step):
        piece = payload[offset : offset + step]
        more = 0x2000 if offset + step < len(payload) else 0
        total = (start - ETHERNET_BYTES + len(piece)).to_bytes(2, "big")
        place = (more | offset // 8).to_bytes(2, "big")
        made.append(with_ipv4_header(frame[:start], {2: total, 6: place}) + piece)
    return made


def damaged(frame: bytes) -> bytes:
    """With the last payload byte changed, so that the TCP checksum no longer holds."""
    return frame[:-1] + bytes([frame[-1] ^ 0x55])


def tagged(frame: bytes, *tags: tuple[int, int]) -> bytes:
    """With 802.1Q / 802.1ad tags, (protocol, VLAN), outermost first."""
    return frame[:12] + b"".join(struct.pack("!HH", kind, number) for kind, number in tags) + frame[12:]
