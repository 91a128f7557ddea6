"""Hostile streams, drawn from a seed, through each parser of a stream: an agent's, a login's, minimega's, QEMU's monitor's.

    python -m tests.hostile_streams CASES SEED

Whatever comes, a call ends in its time with an answer or a HostError, and this process stays within MOST_MEMORY_BYTES.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import resource
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from twinbed.hosts import process, session
from twinbed.hosts.agent import AgentHost
from twinbed.hosts.connection import Connection
from twinbed.hosts.error import HostError
from twinbed.hosts.session import Session, Wanted
from twinbed.hosts.ssh import Address
from twinbed.testbeds.minimega.socket import CommandSocket
from twinbed.testbeds.qemu import monitor

MOST_MEMORY_BYTES = 512 * 2**20
LIMIT_S = 0.4
"""Of each call."""
HANGS_S = 60.0
"""A call that takes so long holds no limit, on whatever machine."""
MOST_CASE_BYTES = 2**20
Stream = Iterator[bytes]

_KINDS = (0x01, *range(0x20, 0x26), 0x2F)
_ENDED = {
    "code": 0,
    "signal": None,
    "usage": {"cpu_s": 0.1, "voluntary_switches": 1, "involuntary_switches": 1},
    "max_rss_bytes": 1,
    "started_monotonic_s": 1.0,
    "ended_monotonic_s": 2.0,
}
_FRAMES = (
    {"version": "1", "key": "k"},
    {"pid": 7},
    _ENDED,
    {"entries": [{"name": "../x", "kind": "file"}]},
    {"message": "\x1b[31m"},
    {"monotonic_s": 1.0},
)
_MINIMEGA = (
    {"More": True},
    {"Status": "working"},
    {"Resp": [{"Host": "n", "Response": "text", "Error": ""}]},
    {"Resp": [{"Host": "n", "Header": ["a", "b"], "Tabular": [["1", "2"]], "Data": [{"x": 1}]}], "More": True},
)
_QMP = (
    {"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 0}}, "capabilities": []}},
    {"return": {}},
    {"return": {"qemu": {"major": 7, "minor": 2, "micro": 0}}},
    {"return": [{"qom-path": "/cpu", "thread-id": 7}]},
    {"error": {"class": "GenericError", "desc": "no"}},
    {"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}},
)
_VALUES = (
    "null",
    "-1",
    "1e999",
    "true",
    '"\\ud800"',
    "[]",
    "{}",
    "9" * 5000,
    "[" * 3000,
    '{"a":' * 3000,
    '"' + "x" * 3000 + '"',
)


def frame(channel: int, kind: int, payload: bytes) -> bytes:
    return struct.pack("<IIB", len(payload), channel, kind) + payload


def mutated(draw: random.Random, text: str) -> bytes:
    """A JSON text with some of its values replaced, or some of its bytes."""
    for _ in range(draw.choice((0, 1, 1, 2, 5))):
        places = [match.span() for match in re.finditer(r'"[^"]*"|\d+|true|null|\[\]|\{\}', text)]
        if places:
            begin, end = draw.choice(places)
            text = text[:begin] + draw.choice(_VALUES) + text[end:]
    content = bytearray(text.encode())
    for _ in range(draw.choice((0, 0, 0, 1, 3))):
        if content:
            content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def _agents(draw: random.Random) -> bytes:
    kind, channel = draw.choice(_KINDS), draw.choice((0, 1, 1, 1, 2, 3, 2**32 - 1))
    if draw.random() < 0.3:
        return frame(channel, kind, draw.randbytes(draw.choice((0, 1, 100, 70_000))))
    if draw.random() < 0.05:
        return struct.pack("<IIB", draw.choice((2**20, 2**20 + 1, 2**32 - 1)), channel, kind)
    return frame(channel, kind, mutated(draw, json.dumps(draw.choice(_FRAMES))))


def _logins(draw: random.Random) -> bytes:
    return draw.choice((b"y\n", b"\n", draw.randbytes(300), b"x" * 9000, b"twinbed- begin\n", b"\x1b]0;t\x07", b"Welcome\r\n"))


def _minimegas(draw: random.Random) -> bytes:
    return draw.choice((b"", b" ", b"\n")) + mutated(draw, json.dumps(draw.choice(_MINIMEGA)))


def _monitors(draw: random.Random) -> bytes:
    return mutated(draw, json.dumps(draw.choice(_QMP))) + draw.choice((b"\r\n", b"\n", b"\n", b""))


def drawn(draw: random.Random, piece: Callable[[random.Random], bytes]) -> Stream:
    """Pieces that differ, or one without end; at most MOST_CASE_BYTES. Some come slowly."""
    same = piece(draw) if draw.random() < 0.3 else None
    slowly, left = draw.random() < 0.1, draw.choice((100, 10_000, MOST_CASE_BYTES))
    while left > 0:
        part = (same if same is not None else piece(draw)) or b"\0"
        left -= len(part)
        if slowly:
            time.sleep(LIMIT_S / 20)
        yield part


def endless(part: bytes) -> Stream:
    many = part * max(1, 2**16 // len(part))
    while True:
        yield many


def _pour(peer: socket.socket, stream: Stream) -> None:
    """Until the other end has gone. What is sent to us is of no interest."""
    with contextlib.suppress(OSError), peer:
        for part in stream:
            peer.sendall(part)


@contextlib.contextmanager
def _pair(stream: Stream) -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    pouring = threading.Thread(target=_pour, args=(theirs, stream))
    pouring.start()
    try:
        yield ours
    finally:
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        ours.close()
        pouring.join(HANGS_S)
        assert not pouring.is_alive()


@contextlib.contextmanager
def _served(stream: Stream) -> Iterator[Path]:
    """A Unix socket whose one connection the stream is poured into."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder, "s")
        server.bind(str(path))
        server.listen(1)

        def serve() -> None:
            with contextlib.suppress(OSError):
                _pour(server.accept()[0], stream)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield path
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            serving.join(HANGS_S)
            assert not serving.is_alive()


def agent(stream: Stream, limit_s: float = LIMIT_S) -> None:
    """Three calls at once, whose channels are 1, 2 and 3."""
    with _pair(stream) as ours, contextlib.closing(Connection("client", ours)) as connection:
        host = AgentHost("client", connection, "/artifacts")
        try:
            program = host.start(["yes"])
        except HostError:  # the stream was lost already
            return
        for call in (
            lambda: host.listdir("/", limit_s=limit_s),
            lambda: host.read("/file", limit_s=limit_s),
            lambda: program.says(b"ready", limit_s),
            lambda: program.usage(limit_s),
            lambda: host.ping(limit_s),
            lambda: program.wait(limit_s),
            lambda: connection.hello(limit_s),
        ):
            with contextlib.suppress(HostError):
                call()


class _Ssh:
    """Its process, of which nothing is asked but the end."""

    flooded = False

    def words(self) -> str:
        return ""

    def end(self, limit_s: float) -> int:
        return 255

    def code(self, limit_s: float) -> int:
        return 255


def login(stream: Stream, limit_s: float = LIMIT_S) -> None:
    with _pair(stream) as ours:
        one = Session.__new__(Session)
        one.stream, one._process = ours, _Ssh()  # type: ignore[assignment]
        one._address, one._token, one._printed = Address("client", "root@c1"), "twinbed-", 0
        with contextlib.suppress(HostError):
            one.preamble(limit_s)


def minimega(stream: Stream, limit_s: float = LIMIT_S) -> None:
    with _served(stream) as path, contextlib.suppress(HostError):
        answer = CommandSocket(path).ask("vm", "info", limit_s=limit_s)
        _ = answer.rows, answer.data, answer.of("n")


def qmp(stream: Stream, limit_s: float = LIMIT_S) -> None:
    with _served(stream) as path, contextlib.suppress(HostError):
        monitor.ask(path, "guest", ("aes",), (("nic0", "mq"),), limit_s=limit_s)


PARSERS: dict[str, tuple[Callable[..., None], Callable[[random.Random], bytes]]] = {
    "agent": (agent, _agents),
    "login": (login, _logins),
    "minimega": (minimega, _minimegas),
    "qmp": (qmp, _monitors),
}
_GREETING = b'{"QMP": {}}\n{"return": {}}\n'


def _after(first: bytes, rest: Stream) -> Stream:
    yield first
    yield from rest


def _real_login(script: str) -> None:
    """Through a program in the place of ssh."""
    command = session.ssh.command
    session.ssh.command = lambda *_, **__: ["sh", "-c", script]
    try:
        one = Session(Wanted(Address("client", "root@c1"), 20.0, None), "digest")
    finally:
        session.ssh.command = command
    with contextlib.closing(one):
        one.preamble(HANGS_S)


FLOODS: dict[str, tuple[Callable[[], object], str]] = {
    "a login's output": (lambda: _real_login("yes"), "printed more than 1,048,576 bytes at login"),
    "a login's error output": (lambda: _real_login("yes >&2"), "wrote more than 1,048,576 bytes of error output"),
    "a program's output": (lambda: process.run(["yes"], limit_s=HANGS_S), "wrote more than 16,777,216 bytes of output"),
    "a program's error output": (
        lambda: process.run(["sh", "-c", "yes >&2"], limit_s=HANGS_S),
        "wrote more than 16,777,216 bytes of error output",
    ),
    "an agent's output": (
        lambda: _flooded_agent(lambda host: host.run(["yes"], limit_s=HANGS_S), 0x21),
        "yes printed more than 67,108,864 bytes",
    ),
    "an agent's file": (
        lambda: _flooded_agent(lambda host: host.read("/dev/zero", limit_s=HANGS_S), 0x24),
        "/dev/zero is longer than the 67,108,864 bytes",
    ),
    "minimega's parts": (lambda: _asked(endless(b'{"More":true}')), "its answer does not end after"),
    "minimega's text": (lambda: _asked(_after(b'{"Resp":[{"Response":"', endless(b"x"))), "its answer does not end after"),
    "minimega's lists": (lambda: _asked(_after(b'{"Resp":', endless(b"["))), "its answer does not end after"),
    "the monitor's events": (
        lambda: _monitored(_after(_GREETING, endless(b'{"event":"STOP"}\n'))),
        "QEMU's monitor sent more than 4,194,304 bytes",
    ),
    "the monitor's line": (lambda: _monitored(endless(b"x")), "QEMU's monitor sent more than 4,194,304 bytes"),
}
"""Streams without end, and what ends each at its usual limit."""


def _flooded_agent(call: Callable[[AgentHost], object], kind: int) -> None:
    with _pair(endless(frame(1, kind, b"x" * 2**16))) as ours, contextlib.closing(Connection("client", ours)) as connection:
        call(AgentHost("client", connection, "/artifacts"))


def _asked(stream: Stream) -> None:
    with _served(stream) as path:
        CommandSocket(path).ask("version", limit_s=HANGS_S)


def _monitored(stream: Stream) -> None:
    with _served(stream) as path:
        monitor.ask(path, "guest", limit_s=HANGS_S)


def peak_bytes(process: int | str = "self") -> int:
    """Return the most memory that a program has had; getrusage(2) has that of who started it too, if that was more.

    Raises OSError where there is no such process, and LookupError where it has ended."""
    return 1024 * _status_kib("VmHWM", process)


def _status_kib(name: str, process: int | str = "self") -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    if found is None:
        raise LookupError(f"process {process} has no {name}")
    return int(found[1])


def bounded() -> None:
    """From now on this process gets so much memory and no more. What it has reserved already, and most of which it never
    touches, is not counted."""
    most = 1024 * _status_kib("VmData") + MOST_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def main(cases: int, seed: int) -> None:
    bounded()
    made: Counter[str] = Counter()
    longest_s = 0.0
    for number in range(cases):
        name = list(PARSERS)[number % len(PARSERS)]
        parse, piece = PARSERS[name]
        begun = time.monotonic()
        try:
            parse(drawn(random.Random(f"{seed} {number}"), piece))
        except BaseException:
            sys.stderr.write(f"case {number} of seed {seed}: {name}\n")
            raise
        longest_s = max(longest_s, time.monotonic() - begun)
        assert longest_s < HANGS_S, f"case {number} of seed {seed}: {name}: {longest_s:.1f} s"
        made[name] += 1
    counts = ", ".join(f"{name} {count}" for name, count in made.items())
    sys.stdout.write(f"{cases} cases ({counts}), longest {longest_s:.1f} s, peak {peak_bytes() / 2**20:.0f} MiB\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
