"""Writes get.erf from the first four packets of a capture: editcap cannot make ERF records of Ethernet frames.

    python3 make_erf.py ../captures/zeek-get.pcap

By Endace's description: time (fraction, then seconds, little-endian), type 2 (Ethernet), flags, record length, losses, packet's
length with its check sequence, two bytes of padding.
"""

import struct
import sys
from pathlib import Path

data = Path(sys.argv[1]).read_bytes()
at, made = 24, b""
for _ in range(4):
    seconds, microseconds, captured, original = struct.unpack_from("<4I", data, at)
    frame = data[at + 16 : at + 16 + captured] + bytes(4)
    made += struct.pack("<II", (microseconds << 32) // 1_000_000, seconds)
    made += struct.pack("!BBHHH2x", 2, 0x04, 18 + len(frame), 0, original + 4) + frame
    at += 16 + captured
Path("get.erf").write_bytes(made)
