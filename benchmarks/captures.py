"""Captures for benchmarks, made by numpy a block of connections at a time.

``python -m benchmarks.captures short_connections FILE COUNT``, ``interleaved_connections FILE COUNT`` or
``large_connections FILE BYTES``: a process of its own, because a program's peak memory is at least that of whoever started it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HEADER = np.array([0xA1B2C3D4, 4 << 16 | 2, 0, 0, 65535, 1], "<u4").tobytes()
OPTION_BYTES = 12
SYN, ACK, PSH, FIN = 2, 16, 8, 1
SHORT = (
    *((0, SYN, 0), (1, SYN | ACK, 0), (0, ACK, 0), (0, PSH | ACK, 100), (1, ACK, 0), (1, ACK, 1448), (1, PSH | ACK, 600)),
    *((0, ACK, 0), (1, FIN | ACK, 0), (0, ACK, 0), (0, FIN | ACK, 0), (1, ACK, 0)),
)
"""A short connection's packets: the side that sends (0 the client), flags, payload bytes."""
PACKETS = len(SHORT)
BULK = ((1, ACK, 1448), (1, ACK, 1448), (0, ACK, 0))
"""What a large transfer repeats."""


def _record(payload_bytes: int) -> np.dtype:
    """A record of Ethernet, IPv4 and TCP with timestamps, and of the payload what is captured."""
    fields = [("sec", "<u4"), ("us", "<u4"), ("captured", "<u4"), ("length", "<u4"), ("ethernet", "V14"), ("version", "u1")]
    fields += [("tos", "u1"), ("ip_length", ">u2"), ("id", ">u2"), ("fragment", ">u2"), ("ttl", "u1"), ("protocol", "u1")]
    fields += [("ip_checksum", ">u2"), ("source", ">u4"), ("target", ">u4"), ("source_port", ">u2"), ("target_port", ">u2")]
    fields += [("sequence", ">u4"), ("acknowledgment", ">u4"), ("offset", "u1"), ("flags", "u1"), ("window", ">u2")]
    fields += [("checksum", ">u2"), ("urgent", ">u2"), ("option", ">u4"), ("time", ">u4"), ("echo", ">u4")]
    fields += [("payload", f"V{payload_bytes}")] if payload_bytes else []
    return np.dtype(fields)


def _fill(to: np.ndarray, time_us: np.ndarray, connection: np.ndarray, side: int, flags: int, payload: int) -> None:
    headers = 54 + OPTION_BYTES
    to["sec"], to["us"] = 1000 + time_us // 10**6, time_us % 10**6
    to["captured"] = to.dtype.itemsize - 16
    to["length"], to["ip_length"] = headers + payload, 40 + OPTION_BYTES + payload
    to["ethernet"] = np.frombuffer(b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0", "V14")[0]
    to["version"], to["fragment"], to["ttl"], to["protocol"] = 0x45, 0x4000, 64, 6
    ends = ((0x0A000000 + connection // 60_000, 1024 + connection % 60_000), (0x0A640001, 80))
    (to["source"], to["source_port"]), (to["target"], to["target_port"]) = ends if side == 0 else ends[::-1]
    to["offset"], to["flags"], to["window"] = 0x50 + (OPTION_BYTES // 4 << 4), flags, 65535 if flags & SYN else 502
    to["option"] = 0x020405B4 if flags & SYN else 0x0101080A
    to["time"] = 0x01030307 if flags & SYN else time_us // 1000
    to["echo"] = 0x04020101 if flags & SYN else time_us // 1000


def short_connections(path: Path, connections: int, at_a_time: int = 1) -> None:
    """Write connections of `PACKETS` packets, one every 40 us, headers alone; `at_a_time` of them take turns by the packet."""
    chance = np.random.default_rng(1)
    with path.open("wb") as out:
        out.write(HEADER)
        for start in range(0, connections, 20_000):
            number = np.arange(start, min(start + 20_000, connections))
            records = np.zeros((len(number), PACKETS), _record(0))
            sequence = chance.integers(0, 2**32, (len(number), 2))
            for at, (side, flags, payload) in enumerate(SHORT):
                to = records[:, at]
                turn = number % at_a_time
                _fill(to, (number - turn) * 40 + (at * at_a_time + turn) * 3, number, side, flags, payload)
                to["sequence"] = sequence[:, side] % 2**32
                to["acknowledgment"] = 0 if flags == SYN else sequence[:, 1 - side] % 2**32
                sequence[:, side] += payload + (flags & (SYN | FIN) != 0)
            groups = records.reshape(-1, at_a_time, PACKETS)
            out.write(groups.swapaxes(1, 2).tobytes())


def interleaved_connections(path: Path, connections: int) -> None:
    """Write short connections of which ten are open at a time: packets next to each other belong to different connections."""
    short_connections(path, connections, at_a_time=10)


def large_connections(path: Path, size_bytes: int, connections: int = 4) -> None:
    """Transfers at the same time, in packets captured whole; some size above `size_bytes`."""
    fields = [(str(at), _record(payload)) for at, (_, _, payload) in enumerate(BULK)]
    rounds = 2_000
    written, turn = len(HEADER), 0
    with path.open("wb") as out:
        out.write(HEADER)
        while written < size_bytes:
            turns = turn + np.arange(rounds)
            records = np.zeros((rounds, connections), np.dtype(fields))
            for connection in range(connections):
                for at, (side, flags, payload) in enumerate(BULK):
                    to = records[:, connection][str(at)]
                    time_us = (turns * connections + connection) * len(BULK) + at
                    _fill(to, time_us, np.full(rounds, connection), side, flags, payload)
                    sent = turns * 2896 + (1448 if at == 1 else 0) + 1
                    to["sequence"] = sent % 2**32 if side else 1
                    to["acknowledgment"] = 1 if side else (turns + 1) * 2896 % 2**32 + 1
            written += out.write(records.tobytes())
            turn += rounds


if __name__ == "__main__":
    make = {maker.__name__: maker for maker in (short_connections, interleaved_connections, large_connections)}[sys.argv[1]]
    make(Path(sys.argv[2]), int(sys.argv[3]))
