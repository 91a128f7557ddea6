"""A trace of system calls to chains of the orders 1 to 3: the probe's binary trace and strace's text, on one core."""

from __future__ import annotations

import random
import resource
import statistics
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks import Figure
from twinbed import _core

TRIES = 5
BINARY_CALLS, TEXT_LINES = 20_000_000, 2_000_000
BLOCK_CALLS = 4096
REQUEST = (41, 72, 72, 42, 233, 232, 233, 1, 232, 0, 0, 0, 3, 232)
"""The calls of one request of ab's, by their numbers on x86_64."""


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="twinbed-bench-") as folder:
        # First, since a process's peak only grows.
        figures = [_memory(Path(folder))]
        for name, write, count, limit, unit in (
            ("binary trace", _binary, BINARY_CALLS, 1 / 20, "µs/call"),
            ("strace text", _text, TEXT_LINES, 1 / 2, "µs/line"),
        ):
            path = Path(folder) / name
            with path.open("wb") as file:
                file.writelines(write(count))
            _, summary = _core.system_calls(path)
            assert summary["calls"] == count, summary
            seconds = _timed(lambda path=path: _core.system_calls(path))
            microseconds = [one / count * 1e6 for one in seconds]
            spread = (min(microseconds), max(microseconds))
            figures.append(
                Figure(f"{count:,} of a {name} to orders 1-3", statistics.median(microseconds), spread, unit, limit=limit)
            )
    return figures


def _memory(folder: Path) -> Figure:
    """How much a stream ten times as long adds to the peak: a compressed one is read as a stream, never as a whole."""
    import pyarrow as pa

    short, long = folder / "short.gz", folder / "long.gz"
    for path, count in ((short, 200_000), (long, 2_000_000)):
        with pa.output_stream(str(path), compression="gzip") as file:
            for part in _text(count):
                file.write(part)
    _core.system_calls(short)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _core.system_calls(long)
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return Figure("memory that 10 times the length adds", added, (added, added), "MiB", limit=1.0)


def _timed(work: Callable[[], object]) -> list[float]:
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def _calls(count: int) -> Iterator[int]:
    chance = random.Random(1)
    made = 0
    while made < count:
        for call in REQUEST:
            # Now and then one call more, as epoll_wait has it.
            for _ in range(1 + (call == 232 and chance.random() < 0.3)):
                if made < count:
                    made += 1
                    yield call


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _binary(count: int) -> Iterator[bytes]:
    """As docs/probe/SYSCALLS.md has it; the same blocks again and again."""

    def block(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("<I", len(body)) + body

    yield b"\x89TBSYS\x01\n" + block(b"H", b"architecture x86_64\nclock monotonic\n") + block(b"S", b"\x01\x64\x64ab")
    blocks = []
    calls = _calls(BLOCK_CALLS * 16)
    for _ in range(16):
        body = b"".join(
            _varint(call << 1 | 1) + _varint(700 + call) + _varint(900 + call) + _varint(call % 2 * 1000)
            for call in islice(calls, BLOCK_CALLS)
        )
        blocks.append(block(b"C", b"\x01\x00\x80\x08" + _varint(BLOCK_CALLS) + body))
    whole, rest = divmod(count, BLOCK_CALLS)
    for index in range(whole):
        yield blocks[index % 16]
    body = b"".join(_varint(0) + _varint(500) for _ in range(rest))
    yield block(b"C", b"\x01\x00\x80\x08" + _varint(rest) + body) + block(b"Z", _varint(1) + _varint(count) + b"\x00")


def _text(count: int) -> Iterator[bytes]:
    names = _core.system_call_names()
    line = "25188 %d.%06d %s(%d, 0x7fff721ba32c, 8192) = %d <0.%06d>\n"
    for index, call in enumerate(_calls(count)):
        second, micro = divmod(index, 1_000_000)
        yield (line % (1_795_271_353 + second, micro, names[call], call, call % 7, index % 100)).encode()
