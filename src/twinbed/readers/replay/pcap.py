"""Frames of a pcap file (draft-ietf-opsawg-pcap) of Ethernet, with their bytes; and such a file of frames."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_MAGIC = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}
"""Magic number -> nanoseconds of a unit of its times' fraction."""
_ETHERNET = 1
_FILE = "IHHiIII"
_PACKET = "IIII"
_SNAPLEN = 262144
LONGEST_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class Frame:
    time_ns: int
    data: bytes
    """As captured."""
    bytes: int
    """Its length on the link."""


def read(content: bytes) -> Sequence[Frame]:
    """Read frames. Raises ValueError with the byte where it is no capture of Ethernet, also for a last record that is cut."""
    byte_order, unit = order(content)
    header = struct.Struct(byte_order + _FILE)
    if len(content) < header.size:
        raise ValueError(f"a pcap file's header has {header.size} bytes; the file ends after {len(content)}")
    link_type = header.unpack_from(content)[6] & 0xFFFF
    if link_type != _ETHERNET:
        raise ValueError(f"a capture of link type {link_type}, where Ethernet (1) is wanted")
    record = struct.Struct(byte_order + _PACKET)
    at, frames = header.size, []
    while at < len(content):
        if len(content) - at < record.size:
            raise ValueError(f"byte {at}: the file ends within a record's header")
        seconds, fraction, captured, length = record.unpack_from(content, at)
        begin = at + record.size
        if captured > LONGEST_BYTES or begin + captured > len(content):
            raise ValueError(f"byte {at}: a record claims {captured} bytes, the file has {len(content) - begin} more")
        frames.append(Frame(seconds * 10**9 + fraction * unit, content[begin : begin + captured], max(length, captured)))
        at = begin + captured
    return frames


def order(content: bytes) -> tuple[str, int]:
    """Return the byte order and the nanoseconds of a time unit. Raises ValueError for another file."""
    for byte_order in "<>":
        if len(content) >= 4 and (unit := _MAGIC.get(struct.unpack(f"{byte_order}I", content[:4])[0])) is not None:
            return byte_order, unit
    raise ValueError(
        "no pcap file (its first four bytes are none of pcap's); `editcap -F pcap FILE OUT` makes one of pcapng, and"
        " compressed files are to be unpacked"
    )


def write(frames: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a file with times in nanoseconds, of (time_ns, frame)."""
    parts = [struct.pack("<" + _FILE, 0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN, _ETHERNET)]
    for time_ns, data in frames:
        seconds, fraction = divmod(time_ns, 10**9)
        parts += [struct.pack("<" + _PACKET, seconds, fraction, len(data), len(data)), data]
    return b"".join(parts)
