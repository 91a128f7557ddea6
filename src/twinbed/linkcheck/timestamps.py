"""When packets left a shaper, and how many bytes of its rate each took; from a capture behind it.  Pure.

A shaper counts an IP packet and the 14 bytes of its Ethernet header, for every segment of a super-packet
(``statistics.physics``, SHAPER); a capture shows a super-packet once, so the headers of its other segments are added here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_MAGIC_NANOSECONDS = b"\x4d\x3c\xb2\xa1"
_MAGIC_MICROSECONDS = b"\xd4\xc3\xb2\xa1"
_FILE_HEADER_BYTES = 24
_RECORD = struct.Struct("<IIII")
_ETHERNET_BYTES = 14
_TAG_BYTES = 4
_TAGGED = b"\x81\x00"
_TCP, _UDP_HEADER_BYTES = 6, 8


@dataclass(frozen=True, slots=True)
class Arrivals:
    """In the order of the capture: ``times_s`` from the first packet, ``sizes`` in bytes as the shaper counts them."""

    times_s: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]

    @property
    def seconds(self) -> float:
        return float(self.times_s[-1] - self.times_s[0]) if len(self.times_s) else 0.0

    @property
    def largest(self) -> float:
        return float(self.sizes.max()) if len(self.sizes) else 0.0


def read(capture: bytes, mtu: int) -> Arrivals:
    """From the bytes of a pcap file of Ethernet frames, written by tcpdump on a little-endian machine.

    Raises ValueError where it is not that.
    """
    if capture[:4] not in (_MAGIC_NANOSECONDS, _MAGIC_MICROSECONDS):
        raise ValueError(f"not a capture as tcpdump writes it: it begins with {capture[:4]!r}")
    fraction = 1 if capture[:4] == _MAGIC_NANOSECONDS else 1000
    times: list[int] = []
    sizes: list[int] = []
    at = _FILE_HEADER_BYTES
    while at + _RECORD.size <= len(capture):
        seconds, rest, kept, length = _RECORD.unpack_from(capture, at)
        at += _RECORD.size
        if at + kept > len(capture):
            break  # cut short while it was written
        times.append(seconds * 10**9 + rest * fraction)
        sizes.append(_counted(capture[at : at + min(kept, 96)], length, mtu))
        at += kept
    first = times[0] if times else 0
    return Arrivals(np.array([time - first for time in times], dtype=float) / 1e9, np.array(sizes, dtype=float))


def _counted(head: bytes, length: int, mtu: int) -> int:
    """The bytes that a shaper counts for a frame of ``length`` bytes that begins with ``head``."""
    ethernet = _ETHERNET_BYTES + (_TAG_BYTES if head[12:14] == _TAGGED else 0)
    if length <= mtu + ethernet or len(head) < ethernet + 20:
        return length
    ip = (head[ethernet] & 0x0F) * 4
    if head[ethernet + 9] == _TCP and len(head) > ethernet + ip + 12:
        transport = (head[ethernet + ip + 12] >> 4) * 4
    else:
        transport = _UDP_HEADER_BYTES
    payload, each = length - ethernet - ip - transport, mtu - ip - transport
    segments = -(-payload // each)
    return length + (segments - 1) * (ethernet + ip + transport)
