"""A capture to connection rows, beside tcptrace on the same file in the same run (where tcptrace is installed)."""

from __future__ import annotations

import random
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import Figure
from twinbed import _core

CONNECTIONS, TRIES = 50_000, 5
PACKETS = 10


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        capture = Path(folder) / "short.pcap"
        capture.write_bytes(_short_connections())
        ours, theirs = [], []
        peer = shutil.which("tcptrace")
        for _ in range(TRIES):
            start = time.perf_counter()
            rows, _ = _core.connections(capture)
            ours.append(time.perf_counter() - start)
            assert rows.num_rows == CONNECTIONS
            if peer:
                start = time.perf_counter()
                subprocess.run([peer, "-n", "-l", "--csv", str(capture)], stdout=subprocess.DEVNULL, check=True)
                theirs.append(time.perf_counter() - start)
    count = CONNECTIONS * PACKETS
    figures = [Figure(f"{count:,} packets of short connections", statistics.median(ours), (min(ours), max(ours)), "s")]
    if theirs:
        ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
        figures.append(Figure("  tcptrace on the same file", statistics.median(theirs), (min(theirs), max(theirs)), "s"))
        figures.append(Figure("  times as fast as tcptrace", statistics.median(ratios), (min(ratios), max(ratios)), "x"))
    return figures


def _short_connections() -> bytes:
    """A pcap of connections of ten packets: handshake, request, answer in two segments, teardown."""
    chance = random.Random(1)
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    flags = ((0, "S", 0), (1, "SA", 0), (0, "A", 0), (0, "PA", 100), (1, "A", 1448), (1, "PA", 600), (0, "A", 0))
    flags += ((0, "FA", 0), (1, "FA", 0), (0, "A", 0))
    bits = {"S": 2, "A": 16, "P": 8, "F": 1}
    for connection in range(CONNECTIONS):
        sequence = [chance.randrange(2**32), chance.randrange(2**32)]
        address = [0x0A000000 + connection // 60_000, 0x0A640001]
        port = [1024 + connection % 60_000, 80]
        for number, (side, flag, length) in enumerate(flags):
            other = 1 - side
            tcp = struct.pack(
                "!HHIIBBHHH",
                port[side],
                port[other],
                sequence[side],
                sequence[other],
                0x50,
                sum(bits[f] for f in flag),
                65535,
                0,
                0,
            )
            ip = struct.pack("!BBHHHBBHII", 0x45, 0, 40 + length, 0, 0x4000, 64, 6, 0, address[side], address[other])
            frame = b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip + tcp
            parts.append(
                struct.pack("<IIII", connection // 1000, connection % 1000 * 1000 + number, len(frame), len(frame) + length)
            )
            parts.append(frame)
            sequence[side] = (sequence[side] + length + ("S" in flag) + ("F" in flag)) % 2**32
    return b"".join(parts)
