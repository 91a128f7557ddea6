"""A stand-in for minimega: a real Unix socket, the recorded answers' shapes, and a state that follows the commands.

Its guests may be real (``guests.Guests``): then programs run in them and packets flow between them.  It can be told to refuse,
to be slow, to cut its answers in half, to close the socket, and to bring responses late and out of order.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minimega.control import ControlCommands
from minimega.server import ServerCommands
from minimega.state import NODE, GuestMaker, Namespace, Queued, Refused
from twinbed.testbeds.minimega import space
from twinbed.testbeds.minimega.space import Leftover


@dataclass
class Fault:
    """What happens to the next command that holds ``text``, ``times`` times. ``kind``: error, slow, half, closed, garbage,
    silent."""

    text: str
    kind: str
    detail: str = ""
    times: int = 1


class StandIn(ServerCommands, ControlCommands):
    """Serves while the block runs."""

    def __init__(self, base: Path, guests: GuestMaker | None = None, *, lag: Callable[[Queued], float] = lambda _: 0.0) -> None:
        self.base, self.guests, self.lag = base, guests, lag
        self.files = base / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        self.spaces = {"minimega": Namespace("minimega")}
        self.active = "minimega"
        self.heard: list[str] = []
        self.faults: list[Fault] = []
        self.chunk_bytes = 1 << 16
        self.pieces = 1
        self.boots, self.netem = True, False
        self.prefix_makes = True
        self.nodes = [NODE]
        self.lock = threading.RLock()
        self._numbers = iter(range(10**9))
        self._vlans = iter(range(101, 4096))
        self._tickets: dict[str, list[threading.Event]] = {}
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(base / "minimega"))
        self._server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        (self.base / "minimega").unlink(missing_ok=True)

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._server.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        decoder, text = json.JSONDecoder(), ""
        with client, contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                text += data.decode()
                with contextlib.suppress(json.JSONDecodeError):
                    request, end = decoder.raw_decode(text)
                    text = text[end:]
                    self._answer(client, request["Command"])

    def _answer(self, client: socket.socket, line: str) -> None:
        with self.lock:
            self.heard.append(line)
            fault = next((each for each in self.faults if each.text in line), None)
            if fault is not None:
                fault.times -= 1
                if fault.times == 0:
                    self.faults.remove(fault)
        kind = fault.kind if fault else ""
        if kind == "slow":
            time.sleep(float(fault.detail if fault else 0))
        if kind == "silent":
            return
        empty = {"Response": "", "Header": None, "Tabular": None, "Error": "", "Data": None}
        try:
            if kind == "error":
                raise Refused(fault.detail if fault else "")
            with self.lock:
                result = self._command(line)
        except Refused as refusal:
            result = {"Error": str(refusal)}
        each = result.pop("Nodes", None) or {NODE: result}
        entries = [{**empty, **answered, "Host": node} for node, answered in each.items()]
        parts = [{"Resp": entries, "Rendered": "", "More": False, "Status": False}]
        for _ in range(self.pieces - 1):
            parts.insert(0, {"Resp": [], "Rendered": "", "More": True, "Status": False})
        sent = b"".join(json.dumps(part).encode() for part in parts)
        if kind == "garbage":
            sent = fault.detail.encode() if fault else b""
        if kind in ("half", "closed"):
            sent = sent[: len(sent) // 2 if kind == "half" else 0]
        for at in range(0, len(sent), self.chunk_bytes):
            client.sendall(sent[at : at + self.chunk_bytes])
        if kind in ("half", "closed"):
            client.shutdown(socket.SHUT_RDWR)

    def _command(self, line: str) -> dict[str, Any]:
        words = shlex.split(line, comments=True)
        literal, name = False, self.active
        while words and words[0] in (".preprocess", "namespace") and len(words) > 2:
            if words[0] == ".preprocess":
                literal = words[1] == "false"
            else:
                name = words[1]
                if name not in self.spaces and not self.prefix_makes:
                    raise Refused(f"no such namespace: {name}")
                self.spaces.setdefault(name, Namespace(name))
            words = words[2:]
        if not literal:
            words = [self._fetched(word) for word in words]
        space = self.spaces[name]
        for length in (4, 3, 2, 1):
            handler = getattr(self, "_do_" + "_".join(words[:length]).replace("-", "_"), None)
            if handler is not None:
                result: dict[str, Any] | None = handler(space, *words[length:])
                return result or {}
        raise Refused(f"invalid command: `{line}`")

    def _fetched(self, word: str) -> str:
        """What minimega takes for the address of a file of its own."""
        return f"{self.files}/{word.rpartition('/')[2]}" if word.startswith(("http://", "https://")) else word


@contextlib.contextmanager
def standing_in(base: Path, guests: GuestMaker | None = None, **settings: Any) -> Iterator[StandIn]:
    with StandIn(base, guests, **settings) as server:
        yield server


def leftovers(server: StandIn) -> Sequence[Leftover]:
    """What dead controllers have left in this stand-in: this machine may have notes of others."""
    return [left for left in space.leftovers() if left.base == str(server.base)]
