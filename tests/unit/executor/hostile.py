"""A scheduler that is none: it speaks dask's protocol on loopback, and says at one place what would run a program here."""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgpack

from twinbed.executor.answers import VALUE

WORKER = "tcp://127.0.0.1:1"


class Canary:
    """An object whose pickle makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return exec, (f"open({str(self.file)!r}, 'w').close()",)


class Raw:
    """A value that is sent apart from its message: its header, and its frames."""

    def __init__(self, header: Mapping[str, object], *frames: bytes, kind: str = "__Serialized__") -> None:
        self.header, self.frames, self.kind = header, frames, kind


def pickled(payload: bytes) -> Raw:
    """An object that dask unpickles whatever a client asks for."""
    return Raw({"pickled-obj": payload}, kind="__Pickled__")


def message(content: object) -> bytes:
    """As dask writes it."""
    frames = [b""]

    def apart(value: object) -> object:
        assert isinstance(value, Raw)
        at = len(frames)
        frames.extend([msgpack.packb({**value.header, "num-sub-frames": len(value.frames)}), *value.frames])
        return {value.kind: at}

    frames[0] = msgpack.packb(content, default=apart)
    prelude = struct.pack(f"{len(frames) + 1}Q", len(frames), *map(len, frames))
    return struct.pack("Q", len(prelude) + sum(map(len, frames))) + prelude + b"".join(frames)


def answer(value: bytes) -> Raw:
    """What an honest worker answers."""
    return Raw({"serializer": "msgpack"}, msgpack.packb(VALUE + value))


class Script:
    """What is said at which place. An honest scheduler, but for what a test puts in."""

    def __init__(self) -> None:
        self.handshake: object = {"compression": None, "python": [3, 11, 0], "pickle-protocol": 5}
        self.start: object = [{"op": "stream-start"}]
        self.replies: dict[str, object] = {
            "identity": {
                "type": "Scheduler",
                "id": "s",
                "workers": {WORKER: {"status": "running", "resources": {}, "nthreads": 1}},
            },
            "ncores": {WORKER: 1},
            "broadcast": {WORKER: {"status": "OK", "result": None}},
        }
        self.reports: Callable[[str], list[object]] = lambda key: [{"op": "key-in-memory", "key": key}]
        """What follows a task."""
        self.result: object = answer(b"[4]")
        self.raw: Mapping[str, bytes] = {}
        """Bytes in place of a reply."""


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._read()
            self._send(self.script.handshake)
            while asked := self._read():
                for each in asked if isinstance(asked, list) else [asked]:
                    self._do(each)

    @property
    def script(self) -> Script:
        return self.server.script  # type: ignore[attr-defined,no-any-return]

    def _do(self, asked: Mapping[str, Any]) -> None:
        match asked.get("op"):
            case "register-client":
                self._send(self.script.start)
            case "update-graph":
                for key in asked["keys"]["as-list"]:
                    self._send(self.script.reports(key))
            case name if name in self.script.raw:
                self.wfile.write(self.script.raw[name])
            case "gather":
                self._send({"status": "OK", "data": {asked["keys"][0]: self.script.result}})
            case _ if asked.get("reply"):
                self._send(self.script.replies[asked["op"]])

    def _send(self, content: object) -> None:
        self.wfile.write(message(content))

    def _read(self) -> Any:
        if len(begun := self.rfile.read(8)) < 8:
            raise EOFError
        first = self.rfile.read(struct.unpack("Q", begun)[0])
        (count,) = struct.unpack_from("Q", first)
        sizes = struct.unpack_from(f"{count}Q", first, 8)
        start = 8 * (1 + count)
        rest = start + sum(sizes) - len(first)
        first += self.rfile.read(max(0, rest))
        return msgpack.unpackb(first[start : start + sizes[0]], strict_map_key=False)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextlib.contextmanager
def scheduler(script: Script) -> Iterator[str]:
    """Yield the address of a scheduler that says what the script has."""
    with _Server(("127.0.0.1", 0), _Connection) as server:
        server.script = script  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()  # or its thread asks the closed socket again and again, until the process ends
