"""Captures cut to their packets' headers, and compressed.

Of each packet the first ``BYTES`` stay. Plain pcap alone is taken, of whichever byte order and precision; pcapng, compressed
captures and damaged ones stay as they are.  A capture that holds headers alone loses nothing, and is a quarter as large then
(docs/scale.md).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import pyarrow as pa

BYTES = 144
"""Ethernet with a VLAN tag 18, IPv6 40, TCP with all options 60, and the 24 bytes of payload by which packets of two captures
are matched (docs/packets.md); rounded up."""
SUFFIX = ".zst"
_ORDERS = {struct.pack(f"{order}I", magic): order for magic in (0xA1B2C3D4, 0xA1B23C4D) for order in "<>"}
"""Magic -> byte order, of files with microseconds and with nanoseconds."""
_HEAD, _RECORD = 24, 16
_MOST_PACKET_BYTES = 2**26
_FRAME_BYTES = 4 * 2**20
"""Compressed at once; a file is as many Zstandard frames, one after the other."""
_LEVEL = 6
"""2 % more than level 9 leaves in two thirds of its time, 6 % less than level 3 does (docs/scale.md)."""


class _Packet(NamedTuple):
    moment: bytes
    """Seconds and the part of a second, as the file has them."""
    kept: bytes
    bytes_on_link: int


def can_be_cut(capture: BinaryIO) -> bool:
    """Whether it is a plain pcap file, whole to its last packet. Raises OSError."""
    try:
        deque(_packets(capture, _order(capture.read(_HEAD))), maxlen=0)
    except ValueError:
        return False
    return True


def cut(capture: BinaryIO, sink: BinaryIO) -> None:
    """Write the headers of a capture's packets, compressed. Raises OSError, and ValueError where it cannot be cut."""
    codec = pa.Codec("zstd", compression_level=_LEVEL)
    head = capture.read(_HEAD)
    order = _order(head)
    part = bytearray(head[:16] + struct.pack(f"{order}I", BYTES) + head[20:])
    for packet in _packets(capture, order):
        part += packet.moment + struct.pack(f"{order}II", len(packet.kept), packet.bytes_on_link) + packet.kept
        if len(part) >= _FRAME_BYTES:
            sink.write(codec.compress(part))
            part.clear()
    if part:
        sink.write(codec.compress(part))


def _order(head: bytes) -> str:
    order = _ORDERS.get(head[:4])
    if order is None or len(head) < _HEAD:
        raise ValueError("it is no plain pcap file")
    return order


def _packets(stream: BinaryIO, order: str) -> Iterator[_Packet]:
    lengths = struct.Struct(f"{order}II")
    while record := stream.read(_RECORD):
        if len(record) < _RECORD:
            raise ValueError("its last record is cut off")
        captured, on_link = lengths.unpack_from(record, 8)
        if captured > min(on_link, _MOST_PACKET_BYTES):
            raise ValueError("a packet has more bytes than were on the link")
        kept = stream.read(captured)
        if len(kept) < captured:
            raise ValueError("its last packet is cut off")
        yield _Packet(record[:8], kept[:BYTES], on_link)
